import { Histogram } from '../core/histogram.js';
import type { CachedMethodStats } from '../core/snapshot.js';

/** Counts the calls of one method. */
export class MethodCounters {
  hits = 0;
  stale = 0;
  misses = 0;
  loads = 0;
  failed = 0;
  savedMs = 0;
  readonly ageMs = new Histogram();
  readonly loadMs = new Histogram();

  stats(method: string, entries: number): CachedMethodStats {
    const { ageMs, loadMs, ...counts } = this;
    return { method, entries, ...counts, ageMs: ageMs.figures(), loadMs: loadMs.figures() };
  }
}
