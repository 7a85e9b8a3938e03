import type { OncePerCause } from '../core/reporter.js';
import type { Bound } from './bound.js';
import type { Entry } from './entry.js';

/** The kept values of one method, within its bounds. */
export class Values {
  private readonly entries = new Map<string, Entry>();

  constructor(
    private readonly method: string,
    /** Bounds of all methods together, and of this one; none for a value that must be available. */
    private readonly bounds: readonly Bound[],
    private readonly report: OncePerCause,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string): Entry | undefined {
    return this.entries.get(key);
  }

  use(entry: Entry): void {
    for (const bound of this.bounds) bound.get(entry);
  }

  /** Replaces the value of the same key, which goes in any case. False: it is not kept. */
  add(entry: Entry): boolean {
    const { bounds, entries, method, report } = this;
    try {
      const held = entries.get(entry.key);
      if (held !== undefined) this.remove(held);
      entry.evicted = () => this.remove(entry);
      for (const bound of bounds) bound.set(entry, entry);
      // A bound takes no entry that is larger than itself.
      if (bounds.every((bound) => bound.has(entry))) {
        entries.set(entry.key, entry);
        return true;
      }
      this.remove(entry);
      const cause = `A value of "${method}"`;
      report.report(cause, `${cause} is larger than \`maxBytes\` of cache() and is not kept.`);
    } catch (error) {
      report.report(`cache of "${method}"`, `A value of "${method}" was not kept: ${String(error)}`);
    }
    return false;
  }

  /** Removes one value; with null all. */
  drop(key: string | null): void {
    for (const entry of key === null ? this.entries.values() : [this.entries.get(key)]) {
      if (entry !== undefined) this.remove(entry);
    }
  }

  private remove(entry: Entry): void {
    for (const bound of this.bounds) bound.delete(entry);
    if (this.entries.get(entry.key) === entry) this.entries.delete(entry.key);
  }
}
