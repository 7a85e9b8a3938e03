import { entryOf } from '../core/entry-of.js';

/** Things of one kind that came again. */
export interface Repeated<T> {
  /** The one that was told; null where too many kinds came for each to be told. */
  readonly first: T | null;
  count: number;
  totalMs: number;
  maxMs: number;
}

/** Tells the first of each kind and counts the rest. */
export class Repeats<T extends { readonly durationMs: number }> {
  private readonly seen = new Map<string, Repeated<T>>();

  constructor(
    private readonly kindOf: (item: T) => string,
    /** So many kinds are told; those beyond are counted together. */
    private readonly maxKinds = 20,
  ) {}

  /** Whether this one is the first of its kind since {@link take}, and to be told. */
  isNew(item: T): boolean {
    const kind = this.kindOf(item);
    if (this.seen.size < this.maxKinds && !this.seen.has(kind)) {
      this.seen.set(kind, { first: item, count: 0, totalMs: 0, maxMs: 0 });
      return true;
    }
    const known =
      this.seen.get(kind) ?? entryOf(this.seen, '', () => ({ first: null, count: 0, totalMs: 0, maxMs: 0 }));
    known.count += 1;
    known.totalMs += item.durationMs;
    known.maxMs = Math.max(known.maxMs, item.durationMs);
    return false;
  }

  /** What came again, and forgets everything. */
  take(): Repeated<T>[] {
    const repeated = [...this.seen.values()].filter(({ count }) => count > 0);
    this.seen.clear();
    return repeated;
  }
}

/** `once more`, `5 times more`. */
export const timesMore = (count: number): string => (count === 1 ? 'once more' : `${count} times more`);
