/** How an answer differs at one place. */
export type DifferenceKind = 'status' | 'header' | 'missing' | 'added' | 'type' | 'value' | 'length';

export interface Difference {
  readonly kind: DifferenceKind;
  /** `items[].price`; `''` for the whole. */
  readonly path: string;
}

/** Names can be data, as in `{ [id]: … }`: there may be any number of them. */
const MAX_PLACES = 1_000;
const MAX_DEPTH = 100;

/** Differences between two JSON values, each place once: items of an array share one place. */
export function jsonDifferences(from: unknown, to: unknown): Difference[] {
  const found = new Map<string, Difference>();
  const note = (kind: DifferenceKind, path: string): void => {
    if (found.size < MAX_PLACES) found.set(`${kind} ${path}`, { kind, path });
  };
  const walk = (a: unknown, b: unknown, path: string, depth: number): void => {
    if (depth > MAX_DEPTH) return;
    if (nameType(a) !== nameType(b)) return note('type', path);
    if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) note('length', path);
      for (let i = 0; i < Math.min(a.length, b.length); i++) walk(a[i], b[i], `${path}[]`, depth + 1);
    } else if (isObject(a) && isObject(b)) {
      for (const name of Object.keys(a)) {
        if (Object.hasOwn(b, name)) walk(a[name], b[name], join(path, name), depth + 1);
        else note('missing', join(path, name));
      }
      for (const name of Object.keys(b)) if (!Object.hasOwn(a, name)) note('added', join(path, name));
    } else if (a !== b) note('value', path);
  };
  walk(from, to, '', 0);
  return [...found.values()];
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
const nameType = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
