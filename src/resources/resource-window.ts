import type { ResourceSample } from '../core/record.js';
import { type CpuLimit, type Throttling, UNKNOWN_THROTTLING } from './cgroup/cpu.js';
import type { ResourceReading } from './resource-reading.js';

type CpuWindow = NonNullable<ResourceSample['cpu']['window']>;

/** Below this two readings are too close for a rate. */
const MIN_WINDOW_MS = 1;

/** By so much the kernel's seconds of one level may differ from another's that was throttled with it. */
const INEXACT = 0.1;

/** Null at first, after a move to another cgroup, and when the clock went back. */
function msBetween(before: ResourceReading | null, after: ResourceReading): number | null {
  if (before === null || before.place !== after.place) return null;
  const ms = after.nowMs - before.nowMs;
  return ms >= MIN_WINDOW_MS ? ms : null;
}

/**
 * The rates between two readings.
 * @param limitCores What utilization is a share of; without it, of the CPUs the process may run on.
 * @param requestCores The CPU request, when it is known.
 */
export function windowBetween(
  before: ResourceReading | null,
  after: ResourceReading,
  limitCores: number | null,
  requestCores: number | null,
): Pick<ResourceSample, 'pressure'> & { cpu: CpuWindow | null } {
  const ms = msBetween(before, after);
  if (before === null || ms === null) return { cpu: null, pressure: { cpuSomeRatio: null, memoryFullRatio: null } };
  const stalled = (key: 'cpuStallSeconds' | 'memoryStallSeconds'): number | null =>
    share(difference(before[key], after[key]), ms / 1_000);
  return {
    cpu: cpuBetween(before, after, ms, limitCores ?? after.machine.cpus, requestCores),
    pressure: { cpuSomeRatio: stalled('cpuStallSeconds'), memoryFullRatio: stalled('memoryStallSeconds') },
  };
}

/** Null after a counter reset. */
function cpuBetween(
  before: ResourceReading,
  after: ResourceReading,
  ms: number,
  capacityCores: number | null,
  requestCores: number | null,
): CpuWindow | null {
  if (before.isCgroupUsage !== after.isCgroupUsage) return null;
  const usedSeconds = difference(before.cpuUsage.usageSeconds, after.cpuUsage.usageSeconds);
  if (usedSeconds === null) return null;
  const usageCores = usedSeconds / (ms / 1_000);
  const { periods, throttledPeriods, throttledSeconds, ratio } = worst(
    throttlingBetween(before.cpuLimit, after.cpuLimit),
  );
  return {
    ms,
    usageCores,
    // Values above 1 are real: bursts, and the skew between clock and counter.
    utilization: capacityCores === null ? null : usageCores / capacityCores,
    requestUtilization: requestCores === null ? null : usageCores / requestCores,
    periods,
    throttledPeriods,
    throttledRatio: ratio,
    throttledMs: milliseconds(throttledSeconds),
    throttledByHiddenAncestor: isThrottledUnseen(before.cpuLimit, after.cpuLimit),
    runQueueMs: difference(before.runQueueMs, after.runQueueMs),
  };
}

type ThrottlingBetween = Throttling & { ratio: number | null };
const UNKNOWN: ThrottlingBetween = { ...UNKNOWN_THROTTLING, ratio: null };

/** Throttling of each limit; unknown for a new limit, and for all when their number has changed: a removed one may have throttled. */
function throttlingBetween(before: CpuLimit, after: CpuLimit): ThrottlingBetween[] {
  if (before.quotas.length !== after.quotas.length) return [UNKNOWN];
  return after.quotas.map((quota) => {
    const past = before.quotas.find(({ directory }) => directory === quota.directory);
    if (past === undefined) return UNKNOWN;
    const of = (key: keyof Throttling): number | null => difference(past.throttling[key], quota.throttling[key]);
    const [periods, throttledPeriods] = [of('periods'), of('throttledPeriods')];
    const ratio = share(throttledPeriods, periods);
    return { periods, throttledPeriods, throttledSeconds: of('throttledSeconds'), ratio };
  });
}

/** Throttling of the limit that was hit most, which need not be the lowest. An unknown one may be worse. */
const worst = (limits: readonly ThrottlingBetween[]): ThrottlingBetween =>
  limits.toSorted((a, b) => (b.ratio ?? Infinity) - (a.ratio ?? Infinity))[0] ?? UNKNOWN;

const visibleSeconds = (limits: readonly Throttling[]): number | null =>
  limits.reduce<number | null>(
    (sum, { throttledSeconds }) => (sum === null || throttledSeconds === null ? null : sum + throttledSeconds),
    0,
  );

/** The kernel throttled here for longer than the limits that can be seen did: by a pod's or a task's quota above the container's mount. */
function isThrottledUnseen(before: CpuLimit, after: CpuLimit): boolean | null {
  // Its readings lie within those of the others, so that it cannot be more without a hidden limit.
  const any = difference(before.anySeconds, after.earlierSeconds);
  const visible = visibleSeconds(throttlingBetween(before, after));
  if (any === null || visible === null) return null;
  if (any > visible * (1 + INEXACT)) return true;
  // A parent counts its other children's seconds, and two limits at once the same ones: a hidden limit's may be among them.
  return any > 0 && any < visible * (1 - INEXACT) ? null : false;
}

/** Null when either is unknown or the counter went back: it was reset, or is another one. */
const difference = (before: number | null, after: number | null): number | null =>
  before === null || after === null || after < before ? null : after - before;

const milliseconds = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1_000);

/** 0 of 0 is 0: nothing was lost. At most 1, because a part is read after its whole. */
function share(part: number | null, whole: number | null): number | null {
  if (part === null || whole === null) return null;
  return part === 0 ? 0 : Math.min(1, part / whole);
}
