import { REDACTED } from '../core/secret-names.js';

/** Values that name nobody: numbers, truth values, dates and times. */
const PLAIN_VALUE = /^(?:-?\d{1,9}(?:\.\d{1,9})?|true|false|\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?)?$/;
/** Forms of ids: a UUID, a ULID, one of MongoDB's. */
const ID = /^(?:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\dA-HJKMNP-TV-Z]{26}|[\da-f]{24})$/i;
/** `page`, `filter[price]` */
const PLAIN_NAME = /^(?:[\w.-]|[[\]]|%5[bd]){1,64}$/i;

/** `all` */
const FLAG = /^[a-z_]{1,24}$/i;

/** Replaces every query value of a URL that is neither plain nor of a parameter in `allow`. */
export function allowedQuery(url: string, allow: readonly string[]): string {
  const mark = url.indexOf('?');
  if (mark < 0) return url;
  const parameters = url.slice(mark + 1).split('&');
  return `${url.slice(0, mark)}?${parameters.map((parameter) => allowedParameter(parameter, allow)).join('&')}`;
}

function allowedParameter(parameter: string, allow: readonly string[]): string {
  const equals = parameter.indexOf('=');
  const name = equals < 0 ? parameter : parameter.slice(0, equals);
  if (allow.includes(name)) return parameter;
  // Without `=` it may be a value: `/search?jane.doe`
  if (equals < 0) return FLAG.test(name) || PLAIN_VALUE.test(name) ? parameter : REDACTED;
  if (!PLAIN_NAME.test(name)) return REDACTED;
  return PLAIN_VALUE.test(parameter.slice(equals + 1)) ? parameter : `${name}=${REDACTED}`;
}

/** Whether a parameter of a path is left out: its value is neither plain nor an id. */
export const isPersonal = (value: unknown): boolean =>
  typeof value !== 'string' || !(PLAIN_VALUE.test(value) || ID.test(value));
