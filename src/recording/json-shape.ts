import { createHash } from 'node:crypto';

/** Limits of a shape: items of an array, values in total, levels of depth. */
const MAX_ITEMS = 100;
const MAX_NODES = 5_000;
const MAX_DEPTH = 12;

/** It is not known what JSON would be made of it. */
const UNKNOWN = new Error('unknown');

/**
 * Which fields of which types the JSON of `data` has, whatever their values, as a hash of 16 digits; null where it cannot be told
 * without calling code of the data's own. Items of an array count once each by their shape.
 */
export function jsonShape(data: unknown): string | null {
  let left = MAX_NODES;
  const shapeOf = (value: unknown, depth: number): string => {
    if ((left -= 1) < 0 || depth > MAX_DEPTH) return '…';
    if (typeof value === 'string') return 's';
    if (typeof value === 'boolean') return 'b';
    if (typeof value === 'number') return Number.isFinite(value) ? 'd' : 'n';
    if (value === null) return 'n';
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'n' : 's';
    if (typeof value !== 'object' || hasJsonOfItsOwn(value)) throw UNKNOWN;
    if (Array.isArray(value)) {
      const items = value
        .slice(0, MAX_ITEMS)
        .map((item: unknown) => (isLeftOut(item) ? 'n' : shapeOf(item, depth + 1)));
      return `[${[...new Set(items)].toSorted().join('|')}]`;
    }
    const fields = Object.keys(value)
      .toSorted()
      .map((name) => [name, (value as Record<string, unknown>)[name]] as const)
      .filter(([, field]) => !isLeftOut(field));
    return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${shapeOf(field, depth + 1)}`).join(',')}}`;
  };
  if (typeof data !== 'object' || data === null) return null;
  try {
    return createHash('sha256').update(shapeOf(data, 0)).digest('hex').slice(0, 16);
  } catch {
    // An accessor of the data's own may throw anything: its JSON is not known either way.
    return null;
  }
}

/** JSON leaves such fields out, and makes them null in arrays. */
const isLeftOut = (value: unknown): boolean =>
  value === undefined || typeof value === 'function' || typeof value === 'symbol';

/** Objects whose JSON is not made of their fields: those with `toJSON`, streams, files and bytes. */
const hasJsonOfItsOwn = (value: object): boolean =>
  ArrayBuffer.isView(value) ||
  ['toJSON', 'pipe', 'getStream'].some((name) => typeof (value as Record<string, unknown>)[name] === 'function');
