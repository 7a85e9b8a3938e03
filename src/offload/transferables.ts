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
 * The ArrayBuffers among values, their fields and elements that can be moved whole: a view of a part shares its buffer with others
 * (Node's pool of small buffers).
 */
export function findMovable(values: readonly unknown[]): ArrayBuffer[] {
  const buffers = values.flatMap(listWithFields).map((value) => {
    if (!ArrayBuffer.isView(value)) return value;
    return value.byteLength === value.buffer.byteLength ? value.buffer : null;
  });
  return [...new Set(buffers)].filter(
    (buffer) => buffer instanceof ArrayBuffer && buffer.byteLength > 0,
  ) as ArrayBuffer[];
}

const listWithFields = (value: unknown): unknown[] =>
  typeof value !== 'object' || value === null || ArrayBuffer.isView(value) ? [value] : [value, ...Object.values(value)];
