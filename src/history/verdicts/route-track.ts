import { getOrAdd } from '../../core/get-or-add.js';
import { startBucket, DAY_MS, HOUR_MS, WINDOW_MS } from '../rows/tiers.js';
import { RouteSums } from '../rows/window.js';
import { METRICS, MIN_REQUESTS, type Unit } from './metrics.js';
import type { WeekShape } from './week-profile.js';

/** A change must show in so many units in a row: they are the recent ones. */
export const RECENT = 2;

/** The usual level of one route and metric, and how much its units spread around it. */
export interface Usual {
  /** When it was computed, epoch milliseconds. */
  readonly at: number;
  /** Expected deviation at each hour of the week; null while weeks are unknown. */
  readonly shape: WeekShape | null;
  /** Median level of the day's units, whatever their hour. */
  readonly dayLevel: number;
  /** Median of levels after subtraction of the shape; `spread` is around it. */
  readonly center: number;
  readonly spread: number;
  readonly units: number;
}

export const readUsual = ({ shape, center }: Usual, at: number): number => (shape?.levelAt(at) ?? 0) + center;

/** Sums of the last 24 hours, forgotten hour by hour. */
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

/** Units of one route: those of the last 24 hours, and the {@link RECENT} ones, which are judged against them. */
export class RouteTrack {
  /** Levels of each unit, by metric. */
  past: { readonly at: number; readonly levels: readonly (number | null)[] }[] = [];
  before = new HourSums(RouteSums);
  readonly recent: Unit[] = [];
  /** By metric. */
  readonly usual: (Usual | undefined)[] = [];
  /** Has not enough requests yet. */
  private pending: Unit | null = null;
  private endedAt = 0;

  /** True when a unit is complete. `isCalm`: no verdict is active on the route, so that its units become the usual. */
  take(at: number, sums: RouteSums, observedMs: number, isCalm: boolean): boolean {
    // An old part of a hardly used route's unit does not show its present state.
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

  /** Recent sums scaled to the time of {@link RECENT} windows: units of a quiet route take longer. */
  now(): RouteSums {
    const now = new RouteSums();
    for (const { sums } of this.recent) now.add(sums, (RECENT * WINDOW_MS) / (this.endedAt - this.recent[0]!.at));
    return now;
  }

  isCurrent(at: number, withinMs = HOUR_MS): boolean {
    return at - this.endedAt < withinMs;
  }

  /** Forgets the past: the present level becomes the usual. */
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
