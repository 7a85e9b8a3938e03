import { pushBounded } from '../core/push-bounded.js';
import type { SchedulingLoss, SchedulingPressure } from '../ports/scheduling.js';
import type { ResourceReading } from './resource-reading.js';
import { lossBetween } from './resource-window.js';

/** A block is classified soon, but one or two readings may come in between. */
const KEPT = 4;
/** A little less than the second between two readings: a timer may fire early after a late one. */
const APART_MS = 900;

/** The last few readings of the counters, for the time that was lost since a moment in the past. */
export class SchedulingHistory implements SchedulingPressure {
  throttledMs: number | null = null;
  private readonly readings: ResourceReading[] = [];

  constructor(private readonly read: () => ResourceReading) {}

  /** To be called every second, or more often. */
  keep(reading: ResourceReading): void {
    const last = this.readings.at(-1);
    if (last !== undefined && reading.nowMs - last.nowMs < APART_MS) return;
    const lostMs = last === undefined ? null : (lossBetween(last, reading)?.throttledMs ?? null);
    if (lostMs !== null) this.throttledMs = (this.throttledMs ?? 0) + lostMs;
    pushBounded(this.readings, reading, KEPT);
  }

  since(monotonicMs: number): SchedulingLoss | null {
    const before = this.readings.findLast(({ nowMs }) => nowMs <= monotonicMs);
    return before === undefined ? null : lossBetween(before, this.read());
  }
}
