import { BADLY_THROTTLED, mb, MIB, percent, THROTTLED } from '../core/figures.js';
import type { ResourceSample } from '../core/record.js';
import type { Reporter } from '../core/reporter.js';
import type { HealthReason } from '../ports/overview.js';
import { writeHeapFlags, youngSpaceBytes } from './resource-advice.js';
import { isHighFirst, findMemoryBound } from './resource-sample.js';

/** Fewer periods than this (of 100 ms) are no trend. */
const MIN_PERIODS = 20;
const NO_PERIODS = { all: 0, throttled: 0, usedMs: 0, ms: 0 };

/** Memory is low below this share of the limit, or below this much where the share would be a lot. */
const LOW_MEMORY_SHARE = 0.15;
const LOW_MEMORY_BYTES = 256 * MIB;
/** One sample may catch a peak that the garbage collector is about to undo. */
const LOW_MEMORY_SAMPLES = 2;

/** The memory left and its limit as text; null when it is not low. `leftBytes`: bytes until the kernel kills. */
export function lowMemory(limits: ResourceSample['limits'], leftBytes: number | null): string | null {
  const memoryBytes = findMemoryBound(limits);
  if (memoryBytes === null || leftBytes === null) return null;
  const isLow = leftBytes < Math.min(memoryBytes * LOW_MEMORY_SHARE, LOW_MEMORY_BYTES);
  return isLow ? `${mb(leftBytes)} of ${mb(memoryBytes)} MB` : null;
}

const HEAP_FULL = 0.9;

/** Reasons for a degraded health that a sample shows. Low memory of the container is none: see {@link lowMemory}. */
export function findContainerReasons({ cpu, process: own }: ResourceSample): HealthReason[] {
  const reasons: string[] = [];
  const { window } = cpu;
  const throttledRatio = window?.throttledRatio ?? 0;
  // A limit outside the container shows no throttled periods, but the main thread's wait for a CPU.
  const waitedRatio = window?.throttledByHiddenAncestor === true ? (window.runQueueMs ?? 0) / window.ms : 0;
  if (throttledRatio > BADLY_THROTTLED) reasons.push(`throttling: ${percent(throttledRatio)} of CPU periods`);
  else if (waitedRatio > BADLY_THROTTLED)
    reasons.push(
      `throttling: by a limit outside the container; the main thread waited ${percent(waitedRatio)} of the time`,
    );
  if (own.heapUsedBytes > own.heapLimitBytes * HEAP_FULL)
    reasons.push(`memory: heap ${mb(own.heapUsedBytes)} of ${mb(own.heapLimitBytes)} MB`);
  return reasons.map((text) => ({ about: 'resources', text }));
}

/** Logs problems in the container's figures, each once, with a remedy. */
export class ResourceDiagnostics {
  private readonly said = new Set<string>();
  private periods = { ...NO_PERIODS };
  private lowSamples = 0;
  private oomKills: number | null = null;

  constructor(
    private readonly reporter: Reporter,
    private readonly isCpuLimitNamed = false,
  ) {}

  /** At the start: does what Node was started with fit the container? */
  start({ limits, memory, process: own }: ResourceSample, youngBytes = youngSpaceBytes()): void {
    this.oomKills = memory.oomKills;
    const memoryBytes = findMemoryBound(limits);
    if (memoryBytes === null || own.heapLimitBytes <= memoryBytes) return;
    const flags = writeHeapFlags(memoryBytes, { youngBytes });
    const variable = flags.includes(' ') ? `'${flags}'` : flags;
    this.warnOnce(
      'heap limit',
      `The heap may grow to ${mb(own.heapLimitBytes)} MB, but the container has ${mb(memoryBytes)} MB` +
        `${isHighFirst(limits) ? ' (memory.high): the kernel would throttle' : ': the kernel would kill'} ` +
        `the process before the garbage collector runs short. Start Node with ${flags}, for example NODE_OPTIONS=${variable}.`,
    );
  }

  /** Every second: what cannot wait for the next record. */
  watch(sample: ResourceSample, leftBytes: number | null = null): void {
    this.watchHeadroom(sample.limits, leftBytes);
    this.watchOomKills(sample.memory.oomKills);
    if (!this.isCpuLimitNamed && sample.cpu.window?.throttledByHiddenAncestor === true) {
      this.warnOnce(
        'hidden limit',
        'The CPU is throttled by a limit that cannot be seen from inside the container, such as that of a pod or a task. ' +
          (sample.limits.cpuCores === null
            ? 'Name it in `resources.cpuLimitCores`, so that utilization is a share of it.'
            : 'It is shared with other containers: raise it, or give them less.'),
      );
    }
  }

  private watchHeadroom(limits: ResourceSample['limits'], leftBytes: number | null): void {
    const low = lowMemory(limits, leftBytes);
    this.lowSamples = low === null ? 0 : this.lowSamples + 1;
    if (this.lowSamples < LOW_MEMORY_SAMPLES) return;
    const then = isHighFirst(limits)
      ? 'throttles the process. Raise memory.high'
      : 'kills the process (exit code 137). Raise the memory limit';
    this.warnOnce(
      'memory low',
      `Only ${low} memory are left; at 0 the kernel ${then}, ` +
        'or lower --max-old-space-size so that the garbage collector works earlier.',
    );
  }

  /** With each record. Short windows are added up until they are a trend. */
  weighThrottling({ limits, cpu: { window } }: ResourceSample): void {
    const seen = this.periods;
    seen.all += window?.periods ?? 0;
    seen.throttled += window?.throttledPeriods ?? 0;
    seen.usedMs += window?.periods == null ? 0 : window.usageCores * window.ms;
    seen.ms += window?.periods == null ? 0 : window.ms;
    if (seen.all < MIN_PERIODS) return;
    this.periods = { ...NO_PERIODS };
    const ratio = seen.throttled / seen.all;
    const isBad = ratio > BADLY_THROTTLED;
    if (ratio <= THROTTLED || (!isBad && this.said.has('badly throttled'))) return;
    const limit = limits.cpuCores === null ? '' : ` of a limit of ${Math.round(limits.cpuCores * 100) / 100}`;
    this.warnOnce(
      isBad ? 'badly throttled' : 'throttled',
      `The CPU was throttled in ${(ratio * 100).toFixed(0)} % of periods: requests wait though the mean use is only ` +
        `${(seen.usedMs / seen.ms).toFixed(2)} cores${limit}. Raise the limit, or run less in parallel (workers, UV_THREADPOOL_SIZE).`,
    );
  }

  private watchOomKills(oomKills: number | null): void {
    if (oomKills === null) return;
    const before = this.oomKills;
    this.oomKills = oomKills;
    if (before === null || oomKills <= before) return;
    const processes = oomKills - before === 1 ? 'a process' : `${oomKills - before} processes`;
    this.warnOnce(
      'oom kill',
      `The kernel killed ${processes} of this container because its memory was used up. Raise the memory limit, or give ` +
        'each worker a smaller --max-old-space-size.',
    );
  }

  private warnOnce(cause: string, message: string): void {
    if (this.said.has(cause)) return;
    this.said.add(cause);
    this.reporter.warn(message);
  }
}
