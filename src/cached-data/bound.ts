/** An entry of a bound. */
export interface Bounded {
  /** Estimates the size, bytes: a whole number above 0. Counting may stop beyond `limit`. */
  bytesUpTo(limit: number): number;
  /** Called when entries that are used more have taken its room. */
  evicted(): void;
}

/** Keeps the entries that were used last, within its limits. */
export interface Bound {
  /** Returns false for an entry that is larger than the whole bound. */
  add(entry: Bounded): boolean;
  use(entry: Bounded): void;
  remove(entry: Bounded): void;
}

/** Limits of a bound; `maxBytes` null: only entries count. */
export interface BoundLimits {
  readonly maxEntries: number;
  readonly maxBytes: number | null;
}

export type MakeBound = (limits: BoundLimits) => Bound;
