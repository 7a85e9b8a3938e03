import type { ControllerCgroup } from './discovery.js';
import type { KernelFile, KernelFiles } from '../kernel/kernel-file.js';
import { exactCount, firstNumber, lineNumber, secondNumber, seconds } from '../kernel/kernel-text.js';
import type { Pace } from '../kernel/pace.js';

/** The effective CPU limit, and the throttling of the cgroup that holds it. */
export interface CpuLimitReading {
  limitCores: number | null;
  byAncestor: boolean;
  /** Whose counters these are; they cannot be compared with another cgroup's. */
  heldBy: string | null;
  periods: number | null;
  throttledPeriods: number | null;
  throttledSeconds: number | null;
  /** Seconds throttled by every limit that can be seen. */
  visibleSeconds: number;
  /** Seconds throttled by any limit, hidden ones included (`cpu.stat.local`, since Linux 6.6). */
  anySeconds: number | null;
}

/** Throttled time is counted in nanoseconds by v1, in microseconds by v2; summed over CPUs. */
const THROTTLED_TIME = {
  v1: { key: 'throttled_time', perSecond: 1e9 },
  v2: { key: 'throttled_usec', perSecond: 1e6 },
} as const;

/** The kernel's own when `cpu.max` names no period. */
const DEFAULT_PERIOD_US = 100_000;

interface QuotaLevel {
  readonly directory: string;
  /** Reads its limit. */
  readonly readCores: () => number | null;
  readonly stat: KernelFile;
  /** What {@link readCores} said last. */
  cores: number | null;
}

/**
 * The lowest CPU quota from the own cgroup up to the mount point. Throttling is counted only in the cgroup that holds
 * the quota (measured on v1 and v2: the own cgroup's `nr_throttled` stays 0), so it is read there.
 */
export class CpuQuota {
  private readonly version: 'v1' | 'v2';
  private readonly levels: readonly QuotaLevel[];
  private readonly local: KernelFile;
  private readonly limitsPace: Pace;

  constructor(files: KernelFiles, { version, directories }: ControllerCgroup) {
    const readerOf = version === 'v1' ? quotaV1 : quotaV2;
    this.version = version;
    this.levels = directories.map((directory) => ({
      directory,
      readCores: readerOf(files, directory),
      stat: files.file(`${directory}/cpu.stat`),
      cores: null,
    }));
    this.limitsPace = files.rarely();
    this.local = files.file(`${directories[0]}/cpu.stat.local`);
  }

  /** Throttling is of now, limits are a few seconds old at most. */
  read(nowMs: number): CpuLimitReading {
    if (this.limitsPace.due(nowMs)) for (const level of this.levels) level.cores = level.readCores();
    const reading: CpuLimitReading = {
      limitCores: null,
      byAncestor: false,
      heldBy: null,
      periods: null,
      throttledPeriods: null,
      throttledSeconds: null,
      visibleSeconds: 0,
      anySeconds: this.throttledSeconds(this.local.read()),
    };
    for (const level of this.levels) {
      const { cores } = level;
      if (cores === null) continue;
      const stat = level.stat.read();
      const throttledSeconds = this.throttledSeconds(stat);
      reading.visibleSeconds += throttledSeconds ?? 0;
      if (reading.limitCores !== null && cores >= reading.limitCores) continue;
      reading.limitCores = cores;
      reading.byAncestor = level !== this.levels[0];
      reading.heldBy = level.directory;
      reading.periods = count(stat, 'nr_periods');
      reading.throttledPeriods = count(stat, 'nr_throttled');
      reading.throttledSeconds = throttledSeconds;
    }
    return reading;
  }

  private throttledSeconds(stat: string | null): number | null {
    const { key, perSecond } = THROTTLED_TIME[this.version];
    return stat === null ? null : seconds(lineNumber(stat, key), perSecond);
  }
}

const count = (stat: string | null, key: string): number | null =>
  stat === null ? null : exactCount(lineNumber(stat, key));

/** `cpu.max` is `quota period` or `max period`. */
function quotaV2(files: KernelFiles, directory: string): () => number | null {
  const max = files.file(`${directory}/cpu.max`);
  return () => {
    const text = max.read();
    const quotaUs = text === null ? null : firstNumber(text);
    return text === null || quotaUs === null ? null : coresOf(quotaUs, secondNumber(text) ?? DEFAULT_PERIOD_US);
  };
}

/** A quota of -1 is none. */
function quotaV1(files: KernelFiles, directory: string): () => number | null {
  const quota = files.file(`${directory}/cpu.cfs_quota_us`);
  const period = files.file(`${directory}/cpu.cfs_period_us`);
  return () => {
    const quotaUs = quota.number();
    return quotaUs === null || quotaUs <= 0 ? null : coresOf(quotaUs, period.number());
  };
}

function coresOf(quotaUs: number, periodUs: number | null): number | null {
  return quotaUs <= 0 || periodUs === null || periodUs <= 0 ? null : quotaUs / periodUs;
}
