import { getOrAdd } from '../../core/get-or-add.js';
import { startBucket, DAY_MS, HOUR_MS, WINDOW_MS } from '../rows/tiers.js';
import { RouteSums } from '../rows/window.js';
import { METRICS, MIN_REQUESTS, type Unit } from './metrics.js';
import type { WeekShape } from './week-profile.js';

/** A change must show in so many units in a row. */
export const RECENT = 2;

/** The usual of one route and metric: the median of its units against the shape of the week, and how they spread. */
export interface Usual {
  readonly at: number;
  /** How it goes with the hours of the week, where that is known. */
  readonly shape: WeekShape | null;
  /** The median of its units, whatever the hour. */
  readonly day: number;
  readonly center: number;
  readonly spread: number;
  readonly units: number;
}

export const readUsual = ({ shape, center }: Usual, at: number): number => (shape?.levelAt(at) ?? 0) + center;

/** Sums by the hour, of the last 24. */
export class HourSums<T extends { add(other: T): void }> {
  private readonly hours = new Map<number, T>();

  constructor(private readonly Sums: new () => T) {}

  add(at: number, sums: T): void {
    getOrAdd(this.hours, startBucket(at, HOUR_MS), () => new this.Sums()).add(sums);
    for (const old of this.hours.keys()) if (old < at - DAY_MS) this.hours.delete(old);
  }

  total(): T {
    const total = new this.Sums();
    for (const sums of this.hours.values()) total.add(sums);
    return total;
  }
}

/** One route as it is remembered: units of the last 24 hours, and the last ones apart. */
export class RouteTrack {
  /** Levels of each unit, one a metric. */
  past: { readonly at: number; readonly levels: readonly (number | null)[] }[] = [];
  before = new HourSums(RouteSums);
  readonly recent: Unit[] = [];
  readonly usual: (Usual | undefined)[] = [];
  private pending: Unit | null = null;
  private endedAt = 0;

  /** True when a unit is complete. `isCalm`: nothing is known to be wrong with the route. */
  take(at: number, sums: RouteSums, observedMs: number, isCalm: boolean): boolean {
    // Hours of a route that is hardly used are no measure of now.
    if (this.pending !== null && at - this.pending.at >= HOUR_MS) this.pending = null;
    const unit = (this.pending ??= { at, sums: new RouteSums(), observedMs: 0 });
    unit.sums.add(sums);
    unit.observedMs += observedMs;
    if (unit.sums.count < MIN_REQUESTS) return false;
    this.pending = null;
    this.endedAt = at + WINDOW_MS;
    this.recent.push(unit);
    const oldest = this.recent.length > RECENT ? this.recent.shift()! : null;
    if (isCalm && oldest !== null) this.remember(oldest);
    return true;
  }

  /** Sums of as much time as {@link RECENT} windows: units of a quiet route take longer than those of a busy one. */
  now(): RouteSums {
    const now = new RouteSums();
    for (const { sums } of this.recent) now.add(sums, (RECENT * WINDOW_MS) / (this.endedAt - this.recent[0]!.at));
    return now;
  }

  isCurrent(at: number, withinMs = HOUR_MS): boolean {
    return at - this.endedAt < withinMs;
  }

  /** Takes what is wrong now for the usual from here on. */
  relearn(): void {
    this.past = [];
    this.usual.length = 0;
    this.before = new HourSums(RouteSums);
  }

  private remember(unit: Unit): void {
    this.past.push({ at: unit.at, levels: METRICS.map((rule) => rule.level(unit)) });
    this.past = this.past.filter(({ at }) => at >= unit.at - DAY_MS);
    this.before.add(unit.at, unit.sums);
  }
}
