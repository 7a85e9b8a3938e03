import { getOrAdd } from '../core/get-or-add.js';

/** Repetitions of one kind since its first was logged. */
export interface Repeated<T> {
  /** The one that was logged; null for the kinds beyond the maximum, which are counted together. */
  readonly first: T | null;
  count: number;
  totalMs: number;
  maxMs: number;
}

/** Finds the first of each kind and counts the others. */
export class Repeats<T extends { readonly durationMs: number }> {
  private readonly seen = new Map<string, Repeated<T>>();

  constructor(
    private readonly readKind: (item: T) => string,
    /** Kinds beyond this number are counted together. */
    private readonly maxKinds = 20,
  ) {}

  /** Whether this one is the first of its kind since {@link take}, and to be logged. */
  isNew(item: T): boolean {
    const kind = this.readKind(item);
    if (this.seen.size < this.maxKinds && !this.seen.has(kind)) {
      this.seen.set(kind, { first: item, count: 0, totalMs: 0, maxMs: 0 });
      return true;
    }
    const known =
      this.seen.get(kind) ?? getOrAdd(this.seen, '', () => ({ first: null, count: 0, totalMs: 0, maxMs: 0 }));
    known.count += 1;
    known.totalMs += item.durationMs;
    known.maxMs = Math.max(known.maxMs, item.durationMs);
    return false;
  }

  /** Returns the repetitions and begins anew. */
  take(): Repeated<T>[] {
    const repeated = [...this.seen.values()].filter(({ count }) => count > 0);
    this.seen.clear();
    return repeated;
  }
}

/** `once more`, `5 more times`. */
export const timesMore = (count: number): string => (count === 1 ? 'once more' : `${count} more times`);
