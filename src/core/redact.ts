import { LEAST_CARD, REDACTED, type SecretNames } from './secret-names.js';

/** A text that is encoded more often, as JSON or in a URL, is no text. */
const MAX_ENCODINGS = 5;
const MAX_DEPTH = 12;
const MAX_FIELDS = 2_000;

/** Parameters in their order and own encoding; a query or a form's body. */
export function redactQuery(query: string, secrets: SecretNames): string {
  const parameters = query.split('&');
  const isSecretOperation = parameters.some(
    (parameter) => parameter.startsWith('query=') && !isSafeText('query', parameter.slice('query='.length), secrets),
  );
  return parameters
    .map((parameter) => {
      const equals = parameter.indexOf('=');
      const rawName = equals < 0 ? parameter : parameter.slice(0, equals);
      const name = decode(rawName);
      // JSON, or an address, in the place of a name.
      if (name === null || !isSafeText('', rawName, secrets)) return REDACTED;
      if (equals < 0) return parameter;
      const isSafe =
        isSafeText(name, parameter.slice(equals + 1), secrets) && !(isSecretOperation && name === VARIABLES);
      return isSafe ? parameter : `${rawName}=${REDACTED}`;
    })
    .join('&');
}

/** A copy of plain data without secret fields; null when it is too large or not plain. Calls none of its code. `maxLength`: of all its texts and names. */
export const redactData = (data: unknown, secrets: SecretNames, maxLength = Infinity): { data: unknown } | null =>
  redactEncoded(data, secrets, 0, maxLength);

function redactEncoded(
  data: unknown,
  secrets: SecretNames,
  encodings: number,
  maxLength = Infinity,
): { data: unknown } | null {
  let left = MAX_FIELDS;
  let leftLength = maxLength;
  const spend = (text: string): void => {
    if ((leftLength -= text.length) < 0) throw TOO_LARGE;
  };
  const namesSecret = (name: unknown): boolean => typeof name === 'string' && secrets.isSecret(name);
  const mayBeValue = (text: unknown): boolean => typeof text === 'string' && !namesSecret(text);
  const copy = (value: unknown, depth: number): unknown => {
    if ((left -= 1) < 0 || depth > MAX_DEPTH) throw TOO_LARGE;
    if (typeof value === 'string') {
      spend(value);
      return isSafeText('', value, secrets, encodings + 1) ? value : REDACTED;
    }
    if (typeof value === 'number')
      return value >= LEAST_CARD && secrets.isSecretValue(String(value)) ? REDACTED : value;
    if (value === null || typeof value === 'boolean') return value;
    // Pairs, and names and values in turns, as headers come.
    if (Array.isArray(value))
      return value.map((item, i) => (i > 0 && namesSecret(value[i - 1]) ? REDACTED : copy(item, depth + 1)));
    if (typeof value !== 'object' || !isPlain(value)) return REDACTED;
    const result: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    if (Object.keys(value).length > left) throw TOO_LARGE;
    const properties = Object.getOwnPropertyDescriptors(value) as Record<string, PropertyDescriptor>;
    // `{ name: 'password', value: … }`, as forms and headers are listed; `path` of a JSON Patch (RFC 6902).
    const isPair = Object.values(properties).some(({ value: name }) => isName(name) && namesSecret(name));
    const operation: unknown = properties['query']?.value;
    const isSecretOperation = typeof operation === 'string' && !isSafeText('', operation, secrets, encodings + 1);
    for (const [key, property] of Object.entries(properties)) {
      if (property.enumerable !== true) continue;
      spend(key);
      const safe =
        'value' in property &&
        !secrets.isSecret(key) &&
        !(isSecretOperation && key === VARIABLES) &&
        !(isPair && key !== 'op' && (PAIR_VALUES.has(key) || mayBeValue(property.value)));
      // JSON in the place of a name: a body that is no form, sent as one.
      if (!isSafeText('', key, secrets, encodings + 1)) result[REDACTED] = REDACTED;
      else result[key] = safe ? copy(property.value, depth + 1) : REDACTED;
    }
    return result;
  };
  try {
    return { data: copy(data, 0) };
  } catch (error) {
    if (error === TOO_LARGE) return null;
    throw error;
  }
}

/** Variables of a GraphQL request: where its `query` names a secret, as in `login(password: $p)`, any of them may be it. */
const VARIABLES = 'variables';
const TOO_LARGE = new Error('too large to redact');
const PAIR_VALUES: ReadonlySet<string> = new Set(['value', 'values', 'content', 'text', 'data', 'v', 'val']);

/** One word, as the name of a header, field or question is: its value is a field beside it. */
const isName = (value: unknown): boolean => typeof value === 'string' && /^[\w./[\]:-]{1,60}$/.test(value);

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

/** Names of fields, parameters and elements in a text that is none of these as a whole: `"token":`, `token=`, `<token>`. */
const NAMES_INSIDE = /<([\w.:-]+)|(?<![\w.-])([\w.-]+)["'\\\]]*\s*[=:]/g;

/** Too short to be a secret whatever it is called, and nothing inside; most values are. */
const HARMLESS = /^[\w.~-]{0,9}$/;

/** The value of a parameter, field or path segment: maybe JSON, a URL or a form in a string. `depth`: how often it was encoded. */
export function isSafeText(name: string, text: string, secrets: SecretNames, depth = 1): boolean {
  if (name !== '' && secrets.isSecret(name)) return false;
  if (HARMLESS.test(text)) return true;
  const decoded = decode(text);
  if (decoded === null || secrets.isSecretValue(decoded)) return false;
  // A space to forms, a digit to base64.
  if (text.includes('+') && secrets.isSecretValue(text)) return false;
  const isJson = /^\s*[[{]/.test(decoded);
  // Encoded again, as a link inside a link is.
  const isEncoded = /%[0-9a-f]{2}/i.test(decoded);
  if ((isJson || isEncoded) && depth >= MAX_ENCODINGS) return false;
  if (isEncoded && !isSafeText(name, decoded, secrets, depth + 1)) return false;
  if (isJson) return isSafeJson(decoded, secrets, depth);
  // `redirect=https://…?token=…`: anything that names a secret inside.
  for (const [, element, inner] of decoded.matchAll(NAMES_INSIDE))
    if (secrets.isSecret(element ?? inner!)) return false;
  return true;
}

function isSafeJson(text: string, secrets: SecretNames, depth: number): boolean {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return false;
  }
  const redacted = redactEncoded(data, secrets, depth);
  return redacted !== null && JSON.stringify(redacted.data) === JSON.stringify(data);
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}
