import { getOrAdd } from '../../core/get-or-add.js';
import { findMedian } from '../../core/statistics/median.js';
import { startBucket, DAY_MS, HOUR_MS, WEEK_MS } from '../rows/tiers.js';
import type { RouteSums } from '../rows/window.js';
import { MIN_REQUESTS } from './metrics.js';

const WEEKS = 5;
const HOURS = 24;

/** How a route goes up and down with the hours of the week. */
export interface WeekShape {
  /** So many weeks know it: of three and more, one with an incident or a change is outvoted. */
  readonly weeks: number;
  /** Null where that hour was never seen before. */
  readonly levelAt: (time: number) => number | null;
}

/** The latency of each route at each hour of up to five weeks, as logarithms. */
export class WeekProfile {
  private readonly hours = new Map<number, Map<string, { count: number; typicalMs: number }>>();
  private oldest = Infinity;

  add(at: number, route: string, { completed, typicalMs }: RouteSums): void {
    const hour = startBucket(at, HOUR_MS);
    const routes = getOrAdd(this.hours, hour, () => {
      for (const old of this.hours.keys()) if (old < at - (WEEKS * WEEK_MS + DAY_MS)) this.hours.delete(old);
      return new Map();
    });
    const sums = getOrAdd(routes, route, () => ({ count: 0, typicalMs: 0 }));
    sums.count += completed;
    sums.typicalMs += typicalMs;
    this.oldest = Math.min(this.oldest, hour);
  }

  /**
   * The median of the weeks, each against its own level of the day until `at`: what a route has become for good moves none.
   * Null with less than a week and its day before, or where that hour was never seen.
   */
  findShape(route: string, at: number): WeekShape | null {
    const weeks: { agoMs: number; level: number }[] = [];
    const mostMs = Math.min(WEEKS * WEEK_MS, at - DAY_MS - this.oldest);
    for (let agoMs = WEEK_MS; agoMs <= mostMs; agoMs += WEEK_MS) {
      if (this.readLevel(route, at - agoMs) === null) continue;
      const day = Array.from({ length: HOURS }, (_, hour) => this.readLevel(route, at - agoMs - hour * HOUR_MS) ?? []);
      weeks.push({ agoMs, level: findMedian(day.flat()) });
    }
    if (weeks.length === 0) return null;
    const levelAt = (time: number): number | null => {
      const levels = weeks.flatMap(({ agoMs, level }) => {
        const one = this.readLevel(route, time - agoMs);
        return one === null ? [] : one - level;
      });
      return levels.length === 0 ? null : findMedian(levels);
    };
    return { weeks: weeks.length, levelAt };
  }

  private readLevel(route: string, at: number): number | null {
    const sums = this.hours.get(startBucket(at, HOUR_MS))?.get(route);
    return sums === undefined || sums.count < MIN_REQUESTS ? null : Math.log(sums.typicalMs / sums.count);
  }
}
