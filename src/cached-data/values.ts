import type { OncePerCause } from '../core/reporter.js';
import type { Entry } from './entry.js';

/** The used part of an `LRUCache`: it keeps the entries of all methods that were used last, by the values of their method. */
export interface Bound {
  set(entry: Entry, values: Values): unknown;
  has(entry: Entry): boolean;
  get(entry: Entry): unknown;
  delete(entry: Entry): unknown;
}

/** Calls `values.remove(entry)` for an entry that leaves. */
export type MakeBound = (maxEntries: number, maxBytes: number) => Bound;

/** The kept values of one method, within its bounds. */
export class Values {
  /** With `maxEntries`, the one that was used last is the last. */
  private readonly entries = new Map<string, Entry>();

  constructor(
    private readonly method: string,
    private readonly maxEntries: number | null,
    /** Null for a value that must be available. */
    private readonly bound: Bound | null,
    private readonly report: OncePerCause,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  use(entry: Entry): void {
    this.bound?.get(entry);
    if (this.maxEntries === null || this.entries.get(entry.key) !== entry) return;
    this.entries.delete(entry.key);
    this.entries.set(entry.key, entry);
  }

  /** Replaces the value of the same key, which goes in any case. False: it is not kept. */
  add(entry: Entry): boolean {
    const { bound, entries, maxEntries, method, report } = this;
    try {
      this.drop(entry.key);
      bound?.set(entry, this);
      // A bound takes no entry that is larger than itself.
      if (bound?.has(entry) === false) {
        const cause = `A value of "${method}" is larger than \`maxBytes\` of cache()`;
        report.report(cause, `${cause}: it is loaded at each call. Raise \`maxBytes\`, or return less.`);
        return false;
      }
      entries.set(entry.key, entry);
      if (maxEntries !== null && entries.size > maxEntries) this.drop(entries.keys().next().value!);
      return true;
    } catch (error) {
      report.report(`cache of "${method}"`, `A value of "${method}" was not kept: ${String(error)}`);
      return false;
    }
  }

  /** Removes one value; with null all. */
  drop(key: string | null): void {
    for (const entry of key === null ? this.entries.values() : [this.entries.get(key)]) {
      if (entry !== undefined) this.remove(entry);
    }
  }

  remove(entry: Entry): void {
    this.bound?.delete(entry);
    if (this.entries.get(entry.key) === entry) this.entries.delete(entry.key);
  }
}
