import type { SchedulingLoss, SchedulingPressure } from '../core/scheduling.js';
import type { ResourceReading } from './cgroup-accounts.js';
import { difference } from './resource-window.js';

/** The part of a reading that tells of lost time. */
export type SchedulingReading = Pick<ResourceReading, 'nowMs' | 'place' | 'cpuLimit' | 'runQueueMs'>;

/** A verdict comes soon after the block, but a look or two may have been taken in between. */
const KEPT = 4;

/** The last few looks at the counters, for whoever wants to know what was lost since a moment in the past. */
export class SchedulingHistory implements SchedulingPressure {
  private readonly looks: SchedulingReading[] = [];

  constructor(private readonly read: () => SchedulingReading) {}

  /** To be called every few seconds. */
  keep(reading: SchedulingReading): void {
    this.looks.push(reading);
    if (this.looks.length > KEPT) this.looks.shift();
  }

  since(monotonicMs: number): SchedulingLoss | null {
    const before = this.looks.findLast(({ nowMs }) => nowMs <= monotonicMs);
    if (before === undefined) return null;
    const now = this.read();
    if (now.place !== before.place) {
      // Moved: what was kept of the old cgroup is of no use any more.
      this.keep(now);
      return null;
    }
    const comparable = before.cpuLimit?.heldBy === now.cpuLimit?.heldBy;
    const throttledSeconds = throttledBetween(before, now, comparable);
    const held = (key: 'periods' | 'throttledPeriods'): number | null =>
      comparable ? difference(before.cpuLimit?.[key] ?? null, now.cpuLimit?.[key] ?? null) : null;
    return {
      ms: now.nowMs - before.nowMs,
      periods: held('periods'),
      throttledPeriods: held('throttledPeriods'),
      throttledMs: throttledSeconds === null ? null : throttledSeconds * 1_000,
      runQueueMs: difference(before.runQueueMs, now.runQueueMs),
    };
  }
}

/**
 * Kernels that do not tell of hidden limits still tell of the visible one. Its total is that of a level's whole life, so
 * levels, and the two sources, are not set against each other.
 */
function throttledBetween(before: SchedulingReading, now: SchedulingReading, comparable: boolean): number | null {
  const any = [before.cpuLimit?.anySeconds ?? null, now.cpuLimit?.anySeconds ?? null] as const;
  if (any[0] !== null && any[1] !== null) return difference(...any);
  return comparable ? difference(before.cpuLimit?.visibleSeconds ?? null, now.cpuLimit?.visibleSeconds ?? null) : null;
}
