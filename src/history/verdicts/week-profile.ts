import { entryOf } from '../../core/entry-of.js';
import { bucketOf, DAY_MS, HOUR_MS, WEEK_MS } from '../rows/tiers.js';
import type { RouteSums } from '../rows/window.js';
import { MIN_REQUESTS } from './route-track.js';

const WEEKS = 5;
/** With less, there is no week to compare with. */
const ENOUGH_MS = 8 * DAY_MS;

export const medianOf = (values: readonly number[]): number => {
  // Typed: a sort without a comparator is several times faster.
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

/** The usual latency of each route at each hour of the week: the median of up to five weeks, as logarithms. */
export class WeekProfile {
  private readonly hours = new Map<number, Map<string, { count: number; typicalMs: number }>>();
  private oldest = Infinity;

  add(at: number, route: string, { completed, typicalMs }: RouteSums): void {
    const hour = bucketOf(at, HOUR_MS);
    const routes = entryOf(this.hours, hour, () => {
      for (const old of this.hours.keys()) if (old < at - (WEEKS * WEEK_MS + DAY_MS)) this.hours.delete(old);
      return new Map();
    });
    const sums = entryOf(routes, route, () => ({ count: 0, typicalMs: 0 }));
    sums.count += completed;
    sums.typicalMs += typicalMs;
    this.oldest = Math.min(this.oldest, hour);
  }

  /** Whether it reaches back for more than a week. */
  isEnough(at: number): boolean {
    return at - this.oldest >= ENOUGH_MS;
  }

  /** Null where that hour was never seen before. */
  expected(route: string, at: number): number | null {
    const levels: number[] = [];
    for (let week = 1; week <= WEEKS; week++) {
      const sums = this.hours.get(bucketOf(at, HOUR_MS) - week * WEEK_MS)?.get(route);
      if (sums !== undefined && sums.count >= MIN_REQUESTS) levels.push(Math.log(sums.typicalMs / sums.count));
    }
    return levels.length === 0 ? null : medianOf(levels);
  }
}
