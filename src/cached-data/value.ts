import { hasOnlyJsonFields, isPlain } from './cache-key.js';

/** Size of an object or array itself, and of one of its fields, bytes. */
const OBJECT_BYTES = 32;
const FIELD_BYTES = 16;

/** Estimates the size of a value in memory, bytes. Stops counting beyond `limit`. */
export function estimateBytes(value: unknown, limit: number): number {
  const seen = new Set<object>();
  const left: unknown[] = [value];
  let bytes = 0;
  while (left.length > 0 && bytes <= limit) {
    const next = left.pop();
    bytes += FIELD_BYTES;
    if (typeof next === 'string') bytes += next.length * 2;
    if (typeof next !== 'object' || next === null || seen.has(next)) continue;
    seen.add(next);
    bytes += OBJECT_BYTES;
    if (ArrayBuffer.isView(next) || next instanceof ArrayBuffer) bytes += next.byteLength;
    else if (next instanceof Map) for (const pair of next) left.push(...pair);
    else if (next instanceof Set || Array.isArray(next)) for (const item of next) left.push(item);
    else for (const field of Object.values(next)) left.push(field);
  }
  return bytes;
}

/** No JSON text is empty. */
const UNDEFINED_TEXT = '';

/** JSON from which the same value comes back; null where JSON would lose or change something. */
export function toText(value: unknown): string | null {
  if (value === undefined) return UNDEFINED_TEXT;
  try {
    return JSON.stringify(value, onlyJson) ?? null;
  } catch {
    // A cycle, or what `onlyJson` refuses.
    return null;
  }
}

export const fromText = (text: string): unknown => (text === UNDEFINED_TEXT ? undefined : JSON.parse(text));

/** `this` has the value as it was before `toJSON()`. An undefined field may get lost: reading it still gives undefined. */
function onlyJson(this: Record<string, unknown>, name: string, value: unknown): unknown {
  const own = this[name];
  const survives =
    typeof own === 'string' ||
    typeof own === 'boolean' ||
    (typeof own === 'number' && Number.isFinite(own) && !Object.is(own, -0)) ||
    (own === undefined && !Array.isArray(this)) ||
    own === null ||
    (typeof own === 'object' && own === value && isPlain(own) && hasOnlyJsonFields(own));
  if (!survives) throw new TypeError('not JSON');
  return value;
}

/** Plain data as it is now. */
export function clonePlain<T>(value: T): T {
  try {
    return structuredClone(value);
  } catch {
    // A proxy is plain as well, and cannot be cloned.
    return value;
  }
}
