/** Objects that are searched for buffers. */
const MOST_OBJECTS = 10_000;

/** Whether a value can go to another thread. */
export function isCloneable(value: unknown): boolean {
  try {
    structuredClone(value);
    return true;
  } catch {
    return false;
  }
}

/**
 * The ArrayBuffers in a value's arrays, maps and plain objects that can be moved whole: a view of a part shares its buffer with
 * others (Node's pool of small buffers).
 */
export function findMovable(root: unknown): ArrayBuffer[] {
  const seen = new Set<unknown>([root]);
  const buffers = new Set<ArrayBuffer>();
  for (const value of seen) {
    if (typeof value !== 'object' || value === null) continue;
    const buffer = ArrayBuffer.isView(value) ? value.buffer : value;
    if (buffer instanceof ArrayBuffer) {
      const isWhole = !ArrayBuffer.isView(value) || value.byteLength === buffer.byteLength;
      if (isWhole && buffer.byteLength > 0) buffers.add(buffer);
      continue;
    }
    for (const inner of listValues(value)) {
      if (seen.size >= MOST_OBJECTS) break;
      if (typeof inner === 'object' && inner !== null) seen.add(inner);
    }
  }
  return [...buffers];
}

const listValues = (value: object): Iterable<unknown> => {
  if (Array.isArray(value)) return value.slice(0, MOST_OBJECTS) as unknown[];
  return value instanceof Map ? value.values() : Object.values(value);
};
