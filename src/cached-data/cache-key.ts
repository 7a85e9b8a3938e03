import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { describeReason } from '../core/reason.js';

/**
 * Makes the key of a call.
 * @throws PERF_ERR_CACHE_KEY
 */
export type MakeKey = (args: readonly unknown[]) => string;

/** The function of `@Cached({ key })`. */
export type OwnKey = (...args: any[]) => string;

/** Begins every key but that of a single text, which is its own key. */
const MARK = '\u0000';
const MAX_DEPTH = 100;

/** The keys of one method: by its own `key`, else by type and value of the arguments. */
export function keyMaker(method: string, own: OwnKey | null): MakeKey {
  return own === null ? (args) => makeKey(args, method) : (args) => makeOwnKey(own, args, method);
}

function makeKey(args: readonly unknown[], method: string): string {
  let { length } = args;
  // `product('a')` and `product('a', undefined)` are one call.
  while (length > 0 && args[length - 1] === undefined) length -= 1;
  const first = args[0];
  if (length === 1 && typeof first === 'string' && first.charCodeAt(0) !== 0) return first;
  let key = MARK;
  for (let i = 0; i < length; i++) key += `${writeValue(args[i], [], `argument ${i + 1} of "${method}"`)},`;
  return key;
}

function makeOwnKey(own: OwnKey, args: readonly unknown[], method: string): string {
  let key: unknown;
  try {
    key = own(...args);
  } catch (error) {
    const message = `the \`key\` of "${method}" has thrown: ${describeReason(error)}`;
    throw new PerfError('PERF_ERR_CACHE_KEY', message, { cause: error });
  }
  if (typeof key === 'string') return key;
  throw new PerfError('PERF_ERR_CACHE_KEY', `the \`key\` of "${method}" must return a string, got ${describe(key)}.`);
}

/** JSON with sorted keys, and a form of its own for what JSON has none for. */
function writeValue(value: unknown, around: readonly object[], where: string): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'bigint':
      return `${value}n`;
    case 'number':
      // A method can distinguish 0 and -0, as `1 / x` does.
      return Object.is(value, -0) ? '-0' : String(value);
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'object':
      return value === null ? 'null' : writeObject(value, around, where);
    default:
      throw noKey(where, `is a ${typeof value}`);
  }
}

function writeObject(value: object, around: readonly object[], where: string): string {
  if (around.includes(value)) throw noKey(where, 'holds itself');
  if (around.length === MAX_DEPTH) throw noKey(where, `is nested more than ${MAX_DEPTH} deep`);
  if (!isPlain(value)) throw noKey(where, `is or holds an instance of ${describeClass(value)}`);
  if (!hasOnlyJsonFields(value))
    throw noKey(
      where,
      'has or holds what JSON leaves out: a field of a symbol, a hidden one, a name or a hole in an array',
    );
  const within = [...around, value];
  if (Array.isArray(value)) return `[${value.map((item) => writeValue(item, within, where)).join(',')}]`;
  const named = value as Record<string, unknown>;
  const text = Object.keys(named)
    .sort()
    .map((name) => {
      if (Object.getOwnPropertyDescriptor(named, name)?.get) throw noKey(where, 'has or holds a getter');
      return `${JSON.stringify(name)}:${writeValue(named[name], within, where)}`;
    });
  return `{${text.join(',')}}`;
}

/**
 * Returns the items of a batch method's only argument.
 * @throws PERF_ERR_CACHE_KEY
 */
export function readItems(args: readonly unknown[], method: string): readonly unknown[] {
  const [items] = args;
  if (args.length === 1 && Array.isArray(items)) return Array.from<unknown>(items);
  const given = args.length === 1 ? describe(items) : `${args.length} arguments`;
  throw new PerfError('PERF_ERR_CACHE_KEY', `"${method}" has \`batch: true\` and takes one array, got ${given}.`);
}

/** An object or array that a literal or JSON has made, of this realm or another: rows of a database may be of a class that has more to it. */
export function isPlain(value: object): boolean {
  let base = Object.getPrototypeOf(value) as object | null;
  // `Array.prototype` of any realm inherits directly from `Object.prototype`.
  if (Array.isArray(value) && base !== null) base = Object.getPrototypeOf(base) as object | null;
  if (base === null) return !Array.isArray(value);
  if (Object.getPrototypeOf(base) !== null) return false;
  // Fields that are inherited from an object without a prototype are no fields of a copy.
  return Object.hasOwn(base, 'hasOwnProperty') || Reflect.ownKeys(base).length === 0;
}

/** It has no fields that JSON, or a copy, leaves out: hidden ones, those of symbols, names and holes of an array. */
export function hasOnlyJsonFields(value: object): boolean {
  const fields = Object.keys(value).length;
  // An array has a hidden `length`.
  const [expected, hidden] = Array.isArray(value) ? [value.length, 1] : [fields, 0];
  return fields === expected && Reflect.ownKeys(value).length === fields + hidden;
}

function describeClass(value: object): string {
  const { constructor } = value as { constructor?: unknown };
  return typeof constructor === 'function' && constructor.name !== '' ? constructor.name : 'a class';
}

function noKey(where: string, what: string): PerfError {
  return new PerfError(
    'PERF_ERR_CACHE_KEY',
    `${where} ${what}, which makes no key. Say what tells its calls apart: \`@Cached({ key: (…) => string })\`.`,
  );
}
