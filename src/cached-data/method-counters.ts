import { Histogram } from '../core/histogram.js';
import type { CachedMethodStats } from '../core/snapshot.js';

/** What is counted of one method. */
export class MethodCounters {
  hits = 0;
  stale = 0;
  misses = 0;
  loads = 0;
  failed = 0;
  savedMs = 0;
  readonly ageMs = new Histogram();
  readonly loadMs = new Histogram();

  stats(method: string, entries: number, ghost: CachedMethodStats['ghost'] = null): CachedMethodStats {
    const { hits, stale, misses, loads, failed, savedMs } = this;
    const ageMs = figuresOf(this.ageMs);
    return {
      method,
      entries,
      hits,
      stale,
      misses,
      loads,
      failed,
      ageMs,
      loadMs: figuresOf(this.loadMs),
      savedMs,
      ghost,
    };
  }
}

const figuresOf = (histogram: Histogram): CachedMethodStats['ageMs'] => ({
  mean: histogram.meanMs,
  p50: histogram.quantileMs(0.5),
  p95: histogram.quantileMs(0.95),
  p99: histogram.quantileMs(0.99),
  max: histogram.maxMs,
});
