import { getOrAdd } from '../../core/get-or-add.js';
import { findMedian } from '../../core/statistics/median.js';
import { startBucket, DAY_MS, HOUR_MS, WEEK_MS } from '../rows/tiers.js';
import type { RouteSums } from '../rows/window.js';
import { MIN_REQUESTS } from './metrics.js';

const WEEKS = 5;
const HOURS = 24;

/** How the latency of a route varies with the hours of the week. */
export interface WeekShape {
  /** Number of known weeks: with three or more, the median outvotes a week with an incident. */
  readonly weeks: number;
  /** Deviation from the level of the day; null for an hour that was never seen. */
  readonly levelAt: (time: number) => number | null;
}

/** The mean latency of each route at each hour of up to five weeks. */
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
   * The median of the weeks. Each week is taken relative to its own day, so that a lasting change does not distort the shape.
   * Null without a full week and a day before it, or when that hour was never seen.
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
