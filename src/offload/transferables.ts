import { types } from 'node:util';

/** Values that are looked at for something to move, or for what cannot be cloned. */
const MOST_VALUES = 10_000;

/** Whether it can go to another thread. */
export function isCloneable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

/** Each value inside, with the path to it; arrays and plain objects are looked into. */
function* valuesIn(root: unknown): Generator<{ value: unknown; path: string }> {
  const seen = new Set<unknown>();
  const waiting = [{ value: root, path: '' }];
  for (let looked = 0; waiting.length > 0 && looked < MOST_VALUES; looked++) {
    const at = waiting.pop()!;
    yield at;
    const { value, path } = at;
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) continue;
    seen.add(value);
    try {
      for (const [key, inner] of entriesOf(value)) {
        if (waiting.push({ value: inner, path: `${path}${key}` }) >= MOST_VALUES) break;
      }
    } catch {
      // A getter, as it will when the value is cloned.
    }
  }
}

function* entriesOf(value: object): Generator<[string, unknown]> {
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) yield [`[${i}]`, value[i]];
  else if (value instanceof Map) for (const [key, inner] of value) yield [`.get(${String(key)})`, inner];
  else for (const [key, inner] of Object.entries(value)) yield [`.${key}`, inner];
}

/** The ArrayBuffers inside that can be moved whole: a view of a part belongs to others too (Node's pool of small buffers). */
export function movableIn(root: unknown): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { value } of valuesIn(root)) {
    if (value instanceof ArrayBuffer) buffers.add(value);
    else if (
      ArrayBuffer.isView(value) &&
      value.buffer instanceof ArrayBuffer &&
      value.byteLength === value.buffer.byteLength
    )
      buffers.add(value.buffer);
  }
  return [...buffers].filter(({ byteLength }) => byteLength > 0);
}

/** Items or values of one that are looked at for their class. */
const MOST_ITEMS = 10;
const FIRST_ITEMS = Object.keys(new Uint8Array(MOST_ITEMS));

/** The class of an instance in a value or in `levels` below it, which a copy does not have. Null: of none. */
export function classLostIn(value: unknown, levels = 3): string | null {
  if (typeof value !== 'object' || value === null) return null;
  const isList = Array.isArray(value);
  if (!isList) {
    // What has a name of its own there is Node's: a Map or a Date stays one.
    if (Object.prototype.toString.call(value) !== '[object Object]') return null;
    const prototype = Object.getPrototypeOf(value) as { constructor?: { name: unknown } } | null;
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      // A class may have a static member of that name.
      const name = prototype.constructor?.name;
      return typeof name === 'string' ? name : 'Object';
    }
  }
  if (levels === 0) return null;
  // Calls no getter.
  for (const key of isList ? FIRST_ITEMS : Object.keys(value).slice(0, MOST_ITEMS)) {
    const lost = classLostIn(Object.getOwnPropertyDescriptor(value, key)?.value, levels - 1);
    if (lost !== null) return lost;
  }
  return null;
}

/** Where the value is that cannot be cloned, as `'.customer.save (a function)'`; null when it is not found. */
export function uncloneableIn(root: unknown): string | null {
  for (const { value, path } of valuesIn(root)) {
    const kind = typeof value;
    if (kind === 'function' || kind === 'symbol') return `${path} (a ${kind})`.trim();
    if (types.isPromise(value) || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
      return `${path} (a ${value.constructor.name})`.trim();
    }
    const buffer = ArrayBuffer.isView(value) ? value.buffer : value;
    if (buffer instanceof ArrayBuffer && buffer.byteLength === 0 && !isCloneable(buffer)) {
      return `${path} (a buffer that was moved before: with \`transfer: true\` give a copy of what is used again)`.trim();
    }
  }
  return null;
}
