import type { ResourceSample } from '../../core/record.js';
import type { ControllerCgroup } from './find.js';
import { exactCount, firstNumber, lineNumber, secondNumber, seconds, type KernelTree } from './kernel-file.js';

type CpuFigures = ResourceSample['cpu'];

/** CPU time since the cgroup (or the process) was made. */
export type CpuUsage = Pick<CpuFigures, 'userSeconds' | 'systemSeconds'> & { usageSeconds: number };

/** How often the cgroup was stopped at its own quota. */
export type Throttling = Pick<CpuFigures, 'periods' | 'throttledPeriods' | 'throttledSeconds'>;

export interface CpuQuota {
  /** Cgroup of the quota: its throttling cannot be compared with that of another cgroup. */
  directory: string;
  isAncestor: boolean;
  cores: number;
  throttling: Throttling;
}

export interface CpuLimit {
  /** Every limit up the tree that can be seen, the lowest first. */
  quotas: readonly CpuQuota[];
  /** Seconds throttled by any limit, hidden ones included (`cpu.stat.local`, since Linux 6.6). */
  anySeconds: number | null;
  /** `anySeconds`, read before all other files: the kernel adds to it while they are read. */
  earlierSeconds: number | null;
}

export const UNKNOWN_THROTTLING: Throttling = { periods: null, throttledPeriods: null, throttledSeconds: null };

/** CPU limit of an unlimited cgroup, or of none. */
export const NOT_LIMITED: CpuLimit = { quotas: [], anySeconds: null, earlierSeconds: null };

/** Null when the kernel has no figure. A running process has used CPU, so a total of 0 is a stub (gVisor). */
export function readCpuUsage(tree: KernelTree, { version, directories }: ControllerCgroup): CpuUsage | null {
  const own = directories[0]!;
  const { usageSeconds, ...split } =
    version === 'v2'
      ? parseUsage(tree.read(`${own}/cpu.stat`))
      : usageV1((name) => tree.read(`${own}/cpuacct.${name}`));
  return usageSeconds === null || usageSeconds === 0 ? null : { usageSeconds, ...split };
}

type Usage = Pick<CpuFigures, 'usageSeconds' | 'userSeconds' | 'systemSeconds'>;

/** v2's `cpu.stat` counts microseconds. */
export const parseUsage = (stat: string): Usage => ({
  usageSeconds: seconds(lineNumber(stat, 'usage_usec'), 1e6),
  userSeconds: seconds(lineNumber(stat, 'user_usec'), 1e6),
  systemSeconds: seconds(lineNumber(stat, 'system_usec'), 1e6),
});

/** v1 counts nanoseconds; `cpuacct.stat` has 10 ms ticks (USER_HZ is 100) and serves only where the others are not there. */
function usageV1(read: (name: string) => string): Usage {
  const usageSeconds = seconds(firstNumber(read('usage')), 1e9);
  let userSeconds = seconds(firstNumber(read('usage_user')), 1e9);
  let systemSeconds = seconds(firstNumber(read('usage_sys')), 1e9);
  if (userSeconds === null || systemSeconds === null) {
    const ticks = read('stat');
    userSeconds = seconds(lineNumber(ticks, 'user'), 100);
    systemSeconds = seconds(lineNumber(ticks, 'system'), 100);
  }
  const sum = userSeconds === null || systemSeconds === null ? null : userSeconds + systemSeconds;
  return { usageSeconds: usageSeconds ?? sum, userSeconds, systemSeconds };
}

/** The CPU quotas up to the mount point. The kernel counts throttling only in the cgroup that has the quota. */
export function readCpuLimit(tree: KernelTree, { version, directories }: ControllerCgroup): CpuLimit {
  const throttlingIn = (file: string): Throttling => parseThrottling(tree.read(file), version);
  const local = `${directories[0]}/cpu.stat.local`;
  const earlierSeconds = throttlingIn(local).throttledSeconds;
  const quotas = directories.flatMap((directory, level) => {
    const cores = readQuota(tree, version, directory);
    if (cores === null) return [];
    return [{ directory, isAncestor: level > 0, cores, throttling: throttlingIn(`${directory}/cpu.stat`) }];
  });
  return {
    quotas: quotas.toSorted((a, b) => a.cores - b.cores),
    anySeconds: earlierSeconds === null ? null : throttlingIn(local).throttledSeconds,
    earlierSeconds,
  };
}

/** Throttled time is summed over CPUs; v1 counts it in nanoseconds, v2 in microseconds. */
export const parseThrottling = (stat: string, version: 'v1' | 'v2'): Throttling => ({
  periods: exactCount(lineNumber(stat, 'nr_periods')),
  throttledPeriods: exactCount(lineNumber(stat, 'nr_throttled')),
  throttledSeconds:
    version === 'v1'
      ? seconds(lineNumber(stat, 'throttled_time'), 1e9)
      : seconds(lineNumber(stat, 'throttled_usec'), 1e6),
});

function readQuota(tree: KernelTree, version: 'v1' | 'v2', directory: string): number | null {
  if (version === 'v2') return parseCpuMax(tree.read(`${directory}/cpu.max`));
  const quotaUs = firstNumber(tree.read(`${directory}/cpu.cfs_quota_us`));
  // A quota of -1 is none.
  if (quotaUs === null || quotaUs <= 0) return null;
  return divideQuota(quotaUs, firstNumber(tree.read(`${directory}/cpu.cfs_period_us`)));
}

/** `quota period`, or `max period`, in microseconds; the kernel's own period is 100 ms. */
export function parseCpuMax(text: string): number | null {
  const quotaUs = firstNumber(text);
  return quotaUs === null ? null : divideQuota(quotaUs, secondNumber(text) ?? 100_000);
}

const divideQuota = (quotaUs: number, periodUs: number | null): number | null =>
  quotaUs <= 0 || periodUs === null || periodUs <= 0 ? null : quotaUs / periodUs;
