import { pushBounded } from '../core/push-bounded.js';
import type { SchedulingLoss, SchedulingPressure } from '../ports/scheduling.js';
import type { ResourceReading } from './resource-reading.js';
import { lossBetween } from './resource-window.js';

/** A classification comes soon after the block, but a look or two may have been taken in between. */
const KEPT = 4;
/** A little less than the second between two looks: a timer may come early after one that came late. */
const APART_MS = 900;

/** The last few looks at the counters, for whoever wants to know what was lost since a moment in the past. */
export class SchedulingHistory implements SchedulingPressure {
  throttledMs: number | null = null;
  private readonly looks: ResourceReading[] = [];

  constructor(private readonly read: () => ResourceReading) {}

  /** To be called every second, or more often. */
  keep(reading: ResourceReading): void {
    const last = this.looks.at(-1);
    if (last !== undefined && reading.nowMs - last.nowMs < APART_MS) return;
    const lostMs = last === undefined ? null : (lossBetween(last, reading)?.throttledMs ?? null);
    if (lostMs !== null) this.throttledMs = (this.throttledMs ?? 0) + lostMs;
    pushBounded(this.looks, reading, KEPT);
  }

  since(monotonicMs: number): SchedulingLoss | null {
    const before = this.looks.findLast(({ nowMs }) => nowMs <= monotonicMs);
    return before === undefined ? null : lossBetween(before, this.read());
  }
}
