import type { Entry } from './entry.js';

/** The used part of an `LRUCache`, whose keys are its values. */
export interface Bound {
  set(entry: Entry, value: Entry): unknown;
  has(entry: Entry): boolean;
  get(entry: Entry): unknown;
  delete(entry: Entry): unknown;
}

/** Options of an `LRUCache`. */
export interface BoundOptions {
  readonly max: number;
  /** Bytes. */
  readonly maxSize?: number;
  readonly sizeCalculation?: (entry: Entry) => number;
  readonly disposeAfter: (entry: Entry, key: Entry, reason: string) => void;
}

export type MakeBound = (options: BoundOptions) => Bound;

/** Keeps the entries that were used last; `maxBytes` null: only entries count. */
export const entryBound = (make: MakeBound, maxEntries: number, maxBytes: number | null): Bound =>
  make({
    max: maxEntries,
    ...(maxBytes !== null && { maxSize: maxBytes, sizeCalculation: (entry: Entry) => entry.bytesUpTo(maxBytes) }),
    // `dispose` would not do: nothing may be deleted within it.
    disposeAfter: (entry, _key, reason) => {
      if (reason === 'evict') entry.evicted();
    },
  });
