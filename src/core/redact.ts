import { printable } from './printable.js';

export const REDACTED = '[redacted]';

/** Words that mark a header, parameter or field as secret, wherever they stand in its name, several of them too. */
const SECRET_WORDS: ReadonlySet<string> = new Set(
  (
    'auth bearer csrf cvc cvv hmac jwt key mfa mnemonic nonce otp pass passcode pin pw saml sess sid sig signed ssn ssid tan ' +
    'ticket totp xsrf code iban card cardnumber'
  ).split(' '),
);

/** The same without word borders: `accesstoken`, `x-apikey`, `userPasswordHash`. */
const SECRET_PARTS = (
  'accesscode accesskey apikey authcode authentic authoriz backupcode cookie creditcard credential encryptionkey masterkey ' +
  'otpcode passphrase passw pincode privatekey pwd recoverycode secret securitycode seedphrase sessid session signature ' +
  'signingkey sshkey token twofa twofactor verifier 2fa'
).split(' ');

/** `userpass`, `ldappass`; neither `bypass` nor `boardingpass`. */
const PASS_AT_END = /^(?!(?:by|com|encom|over|sur|tres|under|boarding|season|ski|high|low|band)pass$).*pass$/;

/** Values that are secret whatever they are called: JSON web tokens, well-known key formats, PEM, HTTP credentials. */
const KEY =
  /(?<![\w-])eyJ[\w-]{6,}\.[\w.-]{4,}|\b(?:sk|pk|rk|whsec)[_-][\w-]{12,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bAIza[\w-]{20,}|\bSG\.[\w-]{12,}|\bnpm_\w{20,}/;
const SECRET_VALUE = new RegExp(`${KEY.source}|-----BEGIN|\\b(?:Bearer|Basic|Digest|Negotiate)\\s+\\S{4,}`, 'i');

/** What may be the number of a payment card: 14 to 16 digits of the ranges that are given to them (ISO/IEC 7812). */
const MAYBE_CARD = /(?<![\w.-])(?:2[2-7]|3\d|4\d|5\d|6\d)(?:[ -]?\d){12,14}(?![\w.-])/g;
/** Numbers below are no card's. */
const LEAST_CARD = 1e13;

/** A long unbroken run of letters and digits mixed: a key, a hash or a reset token more likely than a word. */
const RANDOM_RUN = /[\w-]{32,}/g;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** `https://user:password@host`, and the same without its scheme, as a path's segment is. */
const WITH_CREDENTIALS = /:\/\/[^/\s]*@|:[^\s/:]*@/;

const KEYS = new RegExp(KEY.source, 'gi');
const CREDENTIALS_IN_URL = /:\/\/[^/\s@]*:[^/\s@]*@/g;
/** With something in it that no word has: "Basic authentication" is none. */
const HTTP_CREDENTIALS = /\b(Bearer|Basic|Digest|Negotiate)\s+(?=\S*[\d=.])\S{8,}/gi;

/** A sentence, as errors have it, without the keys and credentials that stand in it. */
export const withoutSecrets = (sentence: string): string =>
  sentence
    .replaceAll(CREDENTIALS_IN_URL, `://${REDACTED}@`)
    .replaceAll(HTTP_CREDENTIALS, `$1 ${REDACTED}`)
    .replaceAll(KEYS, REDACTED);

/** The check digit of a card's number, by Luhn's formula (ISO/IEC 7812-1, annex B). */
function isCard(text: string): boolean {
  const digits = text.replace(/\D/g, '');
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 0 ? digit : 2 * digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '');

/** Decides what must not leave the process. Deciding too often is harmless, too seldom is not. */
export class SecretNames {
  private readonly denied: ReadonlySet<string>;

  /** `denyNames` are secret beyond the built-in ones, in any case and with any separators. */
  constructor(denyNames: readonly string[]) {
    this.denied = new Set(denyNames.map(plain));
  }

  /** Whether a header, parameter or field of this name holds a secret. */
  isSecret(name: string): boolean {
    const flat = plain(name);
    if (this.denied.has(flat) || SECRET_PARTS.some((part) => flat.includes(part))) return true;
    // `a[inviteRef]`, `a.inviteRef`, `/a/inviteRef`
    if (this.denied.size > 0 && name.split(/[^\w\s-]+/).some((part) => this.denied.has(plain(part)))) return true;
    const words = name
      .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
      .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
      .toLowerCase()
      .split(/[^a-z]+/);
    return [flat, ...words].some(
      (word) =>
        SECRET_WORDS.has(word) ||
        SECRET_WORDS.has(word.replace(/s$/, '')) ||
        PASS_AT_END.test(word) ||
        this.denied.has(word),
    );
  }

  /** Whether a value looks like a secret by itself. */
  isSecretValue(value: string): boolean {
    if (SECRET_VALUE.test(value) || WITH_CREDENTIALS.test(value)) return true;
    for (const [number] of value.matchAll(MAYBE_CARD)) if (isCard(number)) return true;
    for (const [run] of value.matchAll(RANDOM_RUN)) {
      if (/\d/.test(run) && /[a-z]/i.test(run) && !UUID.test(run)) return true;
    }
    return false;
  }
}

/** A text that is encoded more often, as JSON or in a URL, is no text. */
const MAX_ENCODINGS = 5;
const MAX_URL_LENGTH = 2_048;
const MAX_DEPTH = 12;
const MAX_FIELDS = 2_000;

/**
 * A request's URL, path and query, without secrets: parameters and path segments whose name or value looks like one.
 * `pattern` is the route's, whose `:token` names a segment. What cannot be read is left out, never passed on.
 */
export function redactUrl(url: string, pattern: string | null, secrets: SecretNames): string {
  const [path, query] = splitUrl(headOf(url));
  const redactedPath = redactPath(path, pattern, secrets);
  const redacted = query === null ? redactedPath : `${redactedPath}?${redactQuery(query, secrets)}`;
  return printable(redacted, MAX_URL_LENGTH);
}

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

/** Whether plain data may be as short as this in JSON. Looks no further than that, but at all names of one object. */
export function isWithin(data: unknown, maxLength: number): boolean {
  let left = maxLength;
  const fits = (value: unknown, depth: number): boolean => {
    left -= typeof value === 'string' ? value.length : 1;
    if (left < 0 || depth > MAX_DEPTH) return false;
    if (typeof value !== 'object' || value === null) return true;
    if (Array.isArray(value)) return value.length <= left && value.every((item) => fits(item, depth + 1));
    if (!isPlain(value)) return true;
    const names = Object.keys(value);
    return (
      names.length <= left &&
      names.every((name) => {
        left -= name.length;
        return fits(Object.getOwnPropertyDescriptor(value, name)?.value, depth + 1);
      })
    );
  };
  return fits(data, 0);
}

/** A copy of plain data without secret fields; null when it is too large or not plain. Calls none of its code. */
export const redactData = (data: unknown, secrets: SecretNames): { data: unknown } | null =>
  redactEncoded(data, secrets, 0);

function redactEncoded(data: unknown, secrets: SecretNames, encodings: number): { data: unknown } | null {
  let left = MAX_FIELDS;
  const namesSecret = (name: unknown): boolean => typeof name === 'string' && secrets.isSecret(name);
  const mayBeValue = (text: unknown): boolean => typeof text === 'string' && !namesSecret(text);
  const copy = (value: unknown, depth: number): unknown => {
    if ((left -= 1) < 0 || depth > MAX_DEPTH) throw TOO_LARGE;
    if (typeof value === 'string') return isSafeText('', value, secrets, encodings + 1) ? value : REDACTED;
    if (typeof value === 'number')
      return value >= LEAST_CARD && secrets.isSecretValue(String(value)) ? REDACTED : value;
    if (value === null || typeof value === 'boolean') return value;
    // Pairs, and names and values in turns, as headers come.
    if (Array.isArray(value))
      return value.map((item, i) => (i > 0 && namesSecret(value[i - 1]) ? REDACTED : copy(item, depth + 1)));
    if (typeof value !== 'object' || !isPlain(value)) return REDACTED;
    const result: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
    const properties = Object.getOwnPropertyDescriptors(value) as Record<string, PropertyDescriptor>;
    // `{ name: 'password', value: … }`, as forms and headers are listed; `path` of a JSON Patch (RFC 6902).
    const isPair = Object.values(properties).some(({ value: name }) => isName(name) && namesSecret(name));
    const operation: unknown = properties['query']?.value;
    const isSecretOperation = typeof operation === 'string' && !isSafeText('', operation, secrets, encodings + 1);
    for (const [key, property] of Object.entries(properties)) {
      if (property.enumerable !== true) continue;
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

/** Of a GraphQL request: where its `query` names a secret, as in `login(password: $p)`, any of them may hold it. */
const VARIABLES = 'variables';
const TOO_LARGE = new Error('too large to redact');
const PAIR_VALUES: ReadonlySet<string> = new Set(['value', 'values', 'content', 'text', 'data', 'v', 'val']);

/** One word, as the name of a header, field or question is: what is secret stands beside it. */
const isName = (value: unknown): boolean => typeof value === 'string' && /^[\w./[\]:-]{1,60}$/.test(value);

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

/** Names of fields, parameters and elements in a text that is none of these as a whole: `"token":`, `token=`, `<token>`. */
const NAMES_INSIDE = /<([\w.:-]+)|(?<![\w.-])([\w.-]+)["'\\\]]*\s*[=:]/g;

/** Too short to be a secret whatever it is called, and nothing inside; most values are. */
const HARMLESS = /^[\w.~-]{0,9}$/;

/** The value of a parameter or field: maybe JSON, a URL or a form in a string. `depth`: how often it was encoded. */
function isSafeText(name: string, text: string, secrets: SecretNames, depth = 1): boolean {
  if (name !== '' && secrets.isSecret(name)) return false;
  if (HARMLESS.test(text)) return true;
  const decoded = decode(text);
  if (decoded === null || secrets.isSecretValue(decoded)) return false;
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

/** What is read of a URL, so that a long one costs no more than a short one. What is not there as a whole is left out. */
function headOf(url: string): string {
  if (url.length <= MAX_URL_LENGTH) return url;
  const end = Math.max(...['/', '?', '&'].map((mark) => url.lastIndexOf(mark, MAX_URL_LENGTH - 2)));
  return `${url.slice(0, end + 1)}…`;
}

/** Path (an empty one is `/`) and query; the scheme, credentials and host of an absolute target are dropped, and any fragment. */
function splitUrl(url: string): [path: string, query: string | null] {
  const target = url.replace(/^[a-z][\w+.-]*:\/\/[^/?#]*/i, '');
  const end = target.indexOf('#');
  const whole = end < 0 ? target : target.slice(0, end);
  const mark = whole.indexOf('?');
  return mark < 0 ? [whole || '/', null] : [whole.slice(0, mark) || '/', whole.slice(mark + 1)];
}

function redactPath(path: string, pattern: string | null, secrets: SecretNames): string {
  const names = (pattern ?? '').split('/');
  // Which segments are secret cannot be told: `/files{/:id}/:token`, `/files/*token`.
  const isVague = /[*{?]/.test(pattern ?? '') && names.some((name) => /[:*]/.test(name) && secrets.isSecret(name));
  const fixed = isVague ? new Set(names.map((name) => name.replaceAll(/[{}]/g, ''))) : null;
  let afterWildcard = false;
  return path
    .split('/')
    .map((segment, index) => {
      const name = names[index] ?? '';
      afterWildcard ||= name.startsWith('*');
      if (fixed?.has(segment) === false) return REDACTED;
      const parameter = !afterWildcard && name.includes(':') ? name : '';
      if (parameter !== '' && secrets.isSecret(parameter)) return REDACTED;
      // Matrix parameters: `/report;token=…`
      return isSafeText('', segment, secrets) ? segment : REDACTED;
    })
    .join('/');
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return null;
  }
}
