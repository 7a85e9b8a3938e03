/** Values that are looked at for something to move, or for what cannot be cloned. */
const MOST_VALUES = 10_000;

/** Each value inside, with the path to it; arrays and plain objects are looked into. */
function* valuesIn(root: unknown): Generator<{ value: unknown; path: string }> {
  const seen = new Set<unknown>();
  const waiting = [{ value: root, path: '' }];
  while (waiting.length > 0 && seen.size < MOST_VALUES) {
    const at = waiting.pop()!;
    yield at;
    const { value, path } = at;
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || seen.has(value)) continue;
    seen.add(value);
    for (const [key, inner] of readable(value)) waiting.push({ value: inner, path: `${path}${key}` });
  }
}

/** A getter may throw, as it will when the value is cloned. */
function readable(value: object): [string, unknown][] {
  try {
    return entriesOf(value);
  } catch {
    return [];
  }
}

function entriesOf(value: object): [string, unknown][] {
  if (Array.isArray(value)) return value.map((inner, index) => [`[${index}]`, inner]);
  if (value instanceof Map) return Array.from(value, ([key, inner]) => [`.get(${String(key)})`, inner]);
  return Object.entries(value).map(([key, inner]) => [`.${key}`, inner]);
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

/** Where the value is that cannot be cloned, as `'.customer.save (a function)'`; null when it is not found. */
export function uncloneableIn(root: unknown): string | null {
  for (const { value, path } of valuesIn(root)) {
    const kind = typeof value;
    if (kind === 'function' || kind === 'symbol') return `${path} (a ${kind})`.trim();
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
      return `${path} (a ${value.constructor.name})`.trim();
    }
  }
  return null;
}
