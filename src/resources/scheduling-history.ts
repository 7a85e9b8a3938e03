import type { SchedulingLoss, SchedulingPressure } from '../core/scheduling.js';
import { difference } from './resource-window.js';

/** Cumulative counters of the kernel's refusals. */
export interface SchedulingReading {
  /** Monotonic milliseconds. */
  nowMs: number;
  /** Readings of different cgroups do not compare. */
  place: string;
  periods: number | null;
  throttledPeriods: number | null;
  throttledMs: number | null;
  runQueueMs: number | null;
}

/** A verdict comes soon after the block, but a look or two may have been taken in between. */
const KEPT = 4;

/** The last few looks at the counters, for whoever wants to know what was lost since a moment in the past. */
export class SchedulingHistory implements SchedulingPressure {
  private readonly looks: SchedulingReading[] = [];

  constructor(private readonly read: () => SchedulingReading) {}

  /** To be called every second or so. */
  look(): void {
    this.looks.push(this.read());
    if (this.looks.length > KEPT) this.looks.shift();
  }

  since(monotonicMs: number): SchedulingLoss | null {
    const before = this.looks.findLast(({ nowMs }) => nowMs <= monotonicMs);
    if (before === undefined) return null;
    const now = this.read();
    if (now.place !== before.place) return null;
    return {
      ms: now.nowMs - before.nowMs,
      periods: difference(before.periods, now.periods),
      throttledPeriods: difference(before.throttledPeriods, now.throttledPeriods),
      throttledMs: difference(before.throttledMs, now.throttledMs),
      runQueueMs: difference(before.runQueueMs, now.runQueueMs),
    };
  }
}
