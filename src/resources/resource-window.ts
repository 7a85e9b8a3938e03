import type { ResourceSample } from '../core/record.js';
import type { ResourceReading } from './cgroup-accounts.js';

/** Rates since the previous reading. */
export interface MeasuredWindow {
  cpu: ResourceSample['cpu']['window'];
  pressure: ResourceSample['pressure'];
}

/** Below this two readings are too close for a rate. */
const MIN_WINDOW_MS = 1;

/**
 * The rates between two readings.
 * @param limitCores What utilization is a share of; without it, of the CPUs the process may run on.
 * @param requestCores The CPU request, when it is known.
 */
export function measureWindow(
  previous: ResourceReading | null,
  reading: ResourceReading,
  limitCores: number | null,
  requestCores: number | null,
): MeasuredWindow {
  if (previous === null || previous.place !== reading.place) return NOTHING;
  const ms = reading.nowMs - previous.nowMs;
  if (!(ms >= MIN_WINDOW_MS)) return NOTHING;
  return {
    cpu: cpuWindow(previous, reading, ms, limitCores ?? reading.cpus, requestCores),
    pressure: {
      cpuSomeRatio: share(difference(previous.cpuStallSeconds, reading.cpuStallSeconds), ms / 1_000),
      memoryFullRatio: share(difference(previous.memoryStallSeconds, reading.memoryStallSeconds), ms / 1_000),
    },
  };
}

function cpuWindow(
  previous: ResourceReading,
  reading: ResourceReading,
  ms: number,
  capacityCores: number | null,
  requestCores: number | null,
): MeasuredWindow['cpu'] {
  if (previous.cpuUsage.from !== reading.cpuUsage.from) return null;
  const usedSeconds = difference(previous.cpuUsage.usageSeconds, reading.cpuUsage.usageSeconds);
  if (usedSeconds === null) return null;
  const usageCores = usedSeconds / (ms / 1_000);
  const { cpuLimit: before } = previous;
  const { cpuLimit: after } = reading;
  // When another level has become the lowest, its counters have another past.
  const comparable = before !== null && after !== null && before.heldBy === after.heldBy;
  const periods = comparable ? difference(before.periods, after.periods) : null;
  const throttledPeriods = comparable ? difference(before.throttledPeriods, after.throttledPeriods) : null;
  const throttledSeconds = comparable ? difference(before.throttledSeconds, after.throttledSeconds) : null;
  return {
    ms,
    usageCores,
    // Not capped at 1: bursts and the skew between clock and counter are real.
    utilization: capacityCores === null ? null : usageCores / capacityCores,
    requestUtilization: requestCores === null ? null : usageCores / requestCores,
    periods,
    throttledPeriods,
    throttledRatio: share(throttledPeriods, periods),
    throttledMs: throttledSeconds === null ? null : throttledSeconds * 1_000,
    throttledByHiddenAncestor: throttledUnseen(before, after),
    runQueueMs: difference(previous.runQueueMs, reading.runQueueMs),
  };
}

const NOTHING: MeasuredWindow = { cpu: null, pressure: { cpuSomeRatio: null, memoryFullRatio: null } };

type LimitReading = ResourceReading['cpuLimit'];

/** The kernel throttled here, yet no limit that can be seen did: a pod's or a task's quota above the container's mount. */
function throttledUnseen(previous: LimitReading, reading: LimitReading): boolean | null {
  const any = difference(previous?.anySeconds ?? null, reading?.anySeconds ?? null);
  const visible = difference(previous?.visibleSeconds ?? null, reading?.visibleSeconds ?? null);
  return any === null || visible === null ? null : any > 0 && visible === 0;
}

/** Null when either is unknown or the counter went back: it was reset, or is another one. */
export function difference(before: number | null, after: number | null): number | null {
  return before === null || after === null || after < before ? null : after - before;
}

/** 0 of 0 is 0: nothing was lost. At most 1, because a part is read after its whole. */
function share(part: number | null, whole: number | null): number | null {
  if (part === null || whole === null) return null;
  return part === 0 ? 0 : Math.min(1, part / whole);
}
