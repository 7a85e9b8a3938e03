import { PerfError } from './perf.error.js';
import { REDACTED, SecretNames } from './secret-names.js';

/** Reads one option: what it may be, its default, and the value or a {@link PerfError} with the fix. */
export interface Option<T> {
  /** How the sentence goes on: "`path` must be …". */
  readonly expected: string;
  read(value: unknown, path: string): T;
}

export type Resolved<O> = O extends Option<infer T> ? T : never;

/** An option that is wrong: where, what was expected, what was given, what to do. */
export function optionError(path: string, expected: string, given: unknown, advice = ''): PerfError {
  const where = path === '' ? 'The options' : `\`${path}\``;
  const message = `${where} must be ${expected}, got ${describe(given)}.${advice === '' ? '' : ` ${advice}`}`;
  return new PerfError('PERF_ERR_OPTION', message);
}

const secrets = new SecretNames([]);
/** May be a URL with an unescaped password. */
const MAYBE_CREDENTIALS = /:.*@/s;

/** A value and its type, short and on one line. Objects are named, never printed: they may contain secrets, as texts of their form do. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return `\`${String(value)}\``;
  if (typeof value === 'string') {
    const hide = MAYBE_CREDENTIALS.test(value) || secrets.isSecretValue(value);
    return `\`${JSON.stringify(hide ? REDACTED : value.slice(0, 60))}\` (string)`;
  }
  if (typeof value === 'number' || typeof value === 'boolean') return `\`${String(value)}\` (${typeof value})`;
  if (typeof value === 'bigint') return `\`${value}n\` (bigint)`;
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

const option = <T>(expected: string, read: (value: unknown, path: string) => T): Option<T> => ({ expected, read });

export interface NumberRule {
  /** Without one it must be given. */
  default?: number;
  /** The unit in words: "a number of milliseconds". */
  unit: string;
  /** Lowest value that is allowed. @default 0, excluded */
  min?: number;
  max?: number;
  integer?: boolean;
}

/** One value that passes `is`. Without a default it must be given. */
export function value<T>(expected: string, is: (value: unknown) => boolean, byDefault?: T): Option<T> {
  return option(expected, (given, path) => {
    if (given === undefined && byDefault !== undefined) return byDefault;
    if (!is(given)) throw optionError(path, expected, given);
    return given as T;
  });
}

/** A finite number; above 0 without `min`. */
export function number(rule: NumberRule): Option<number> {
  const { unit, min, max } = rule;
  const least = min === undefined ? 'above 0' : `of ${min} or more`;
  const expected =
    max === undefined
      ? `${unit} ${least}`
      : min === undefined
        ? `${unit} ${least} and at most ${max}`
        : `${unit} from ${min} to ${max}`;
  const is = (given: unknown): boolean =>
    typeof given === 'number' &&
    Number.isFinite(given) &&
    (rule.min === undefined ? given > 0 : given >= rule.min) &&
    (rule.max === undefined || given <= rule.max) &&
    (rule.integer !== true || Number.isInteger(given));
  return value(expected, is, rule.default);
}

export const optionalNumber = (rule: Omit<NumberRule, 'default'>): Option<number | null> => optional(number(rule));

export function boolean(rule: { default: boolean }): Option<boolean> {
  return value('`true` or `false`', (given) => typeof given === 'boolean', rule.default);
}

export function choice<const T extends string | boolean>(values: readonly T[], rule: { default: T }): Option<T> {
  const expected = `one of ${values.map((one) => `\`${JSON.stringify(one)}\``).join(', ')}`;
  return value(expected, (given) => values.includes(given as T), rule.default);
}

export function string(rule: { default?: string; what: string; test?: (value: string) => boolean }): Option<string> {
  return value(rule.what, (given) => typeof given === 'string' && rule.test?.(given) !== false, rule.default);
}

/** A list whose entries are each read by `entry`; `what` names the whole in an error. */
export function list<T>(entry: Option<T>, rule: { default: readonly T[]; what: string }): Option<readonly T[]> {
  return option(rule.what, (value, path) => {
    if (value === undefined) return rule.default;
    if (!Array.isArray(value)) throw optionError(path, rule.what, value);
    return Object.freeze(
      value.map((item: unknown, index) => {
        // A hole would be read as "not given" and become the entry's default.
        if (item === undefined) throw optionError(`${path}[${index}]`, entry.expected, item);
        return entry.read(item, `${path}[${index}]`);
      }),
    );
  });
}

/** At least so many numbers above 0, each above the one before it; `unit` is what they count: "milliseconds". */
export function ascending(
  unit: string,
  rule: { default: readonly number[]; least: number },
): Option<readonly number[]> {
  const what = `a list of ${unit}, ascending`;
  const numbers = list(number({ unit: `a number of ${unit}` }), { default: rule.default, what });
  return option(what, (value, path) => {
    const read = numbers.read(value, path);
    const isAscending = read.every((number, index) => index === 0 || number > read[index - 1]!);
    if (read.length < rule.least || !isAscending) throw optionError(path, what, value);
    return read;
  });
}

export function optional<T>(inner: Option<T>): Option<T | null> {
  return option(inner.expected, (value, path) => (value === undefined ? null : inner.read(value, path)));
}

type Shape = Readonly<Record<string, Option<unknown>>>;
type ResolvedShape<S extends Shape> = { readonly [K in keyof S]: Resolved<S[K]> };

/** An object of known keys. Not given is every default. */
export function object<S extends Shape>(shape: S): Option<ResolvedShape<S>> {
  const expected = 'an object';
  return option(expected, (value, path) => {
    const given = value === undefined ? {} : value;
    if (typeof given !== 'object' || given === null || Array.isArray(given)) throw optionError(path, expected, value);
    const prefix = path === '' ? '' : `${path}.`;
    for (const key of Object.keys(given))
      if (!Object.hasOwn(shape, key)) throw unknownKey(prefix, key, Object.keys(shape));
    const resolved: Record<string, unknown> = {};
    for (const [key, inner] of Object.entries(shape)) {
      resolved[key] = inner.read(givenFor(given, key), `${prefix}${key}`);
    }
    return Object.freeze(resolved) as ResolvedShape<S>;
  });
}

/** Options may inherit from a class; a property that another package has added to every object is no option. */
function givenFor(options: object, key: string): unknown {
  const given: unknown = Reflect.get(options, key);
  const isEverybodys = given === Reflect.get(Object.prototype, key) && !Object.hasOwn(options, key);
  return isEverybodys ? undefined : given;
}

/** `false` switches the feature off (null), `true` or nothing takes every default, an object sets some. */
export function feature<S extends Shape>(shape: S): Option<ResolvedShape<S> | null> {
  const inner = object(shape);
  const expected = '`true`, `false` or an object';
  return option(expected, (value, path) => {
    if (value === false) return null;
    if (value === true) return inner.read(undefined, path);
    const advice = `To switch the feature off, set \`${path}: false\`.`;
    if (value !== undefined && (typeof value !== 'object' || value === null || Array.isArray(value))) {
      throw optionError(path, expected, value, advice);
    }
    try {
      return inner.read(value, path);
    } catch (error) {
      if (error instanceof PerfError) error.message += `\n${advice}`;
      throw error;
    }
  });
}

function unknownKey(prefix: string, key: string, known: readonly string[]): PerfError {
  const message = `\`${prefix}${key.slice(0, 60)}\` is not an option. Known options: ${known.join(', ')}.`;
  return new PerfError('PERF_ERR_OPTION', message);
}
