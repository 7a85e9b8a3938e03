/** What takes room. */
export interface Bounded {
  /** Roughly, a whole number above 0; what is larger than `limit` need not be counted to its end. */
  bytesUpTo(limit: number): number;
  /** It had to go: something else is used more. */
  evicted(): void;
}

/** Keeps what was used last, as far as there is room. */
export interface Bound {
  /** False: it is larger than all there is. */
  add(entry: Bounded): boolean;
  use(entry: Bounded): void;
  remove(entry: Bounded): void;
}

/** How much room there is; `maxBytes` null: entries alone count. */
export interface BoundLimits {
  readonly maxEntries: number;
  readonly maxBytes: number | null;
}

export type MakeBound = (limits: BoundLimits) => Bound;
