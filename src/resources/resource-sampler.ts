import { type MonotonicClock, monotonicMs } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import { type ResourceAdvice, advise } from './resource-advice.js';
import { ResourceReader, type ResourceReading } from './resource-reading.js';
import { findLimits, sampleSince } from './resource-sample.js';
import { type ResolvedResourcesOptions, type ResourcesOptions, samplerRows } from './resources.options.js';

/** Reads the container's limits and usage: CPU, throttling and memory. Injection token and type. */
export abstract class ResourceSampler {
  /**
   * Reads the kernel's files now, synchronously, in a few tenths of a millisecond. Rates (`cpu.window`, `pressure`) are of the
   * time since the previous call on this sampler. Never throws; what cannot be known is null.
   */
  abstract sample(): ResourceSample;
  /** Latest result of {@link sample}; null before the first call. */
  abstract readonly latest: ResourceSample | null;
  /** Recommends sizes for the current limits. Does not change the rates of {@link sample}. */
  abstract recommend(): ResourceAdvice;
  /** Ends its use. Nothing is kept open between samples, so a later one still works. */
  abstract close(): void;
}

/** A sampler over a reader that may be shared: the baseline is its own. */
export class ReadingResourceSampler extends ResourceSampler {
  latest: ResourceSample | null = null;
  private previous: ResourceReading | null = null;

  constructor(
    private readonly reader: ResourceReader,
    private readonly options: ResolvedResourcesOptions,
  ) {
    super();
  }

  sample(): ResourceSample {
    const reading = this.reader.read();
    this.latest = sampleSince(this.previous, reading, this.options);
    this.previous = reading;
    return this.latest;
  }

  recommend(): ResourceAdvice {
    const reading = this.reader.read();
    return advise(findLimits(reading, this.options), reading.machine);
  }

  close(): void {}
}

/** Root path and clock of {@link createResourceSampler}, besides {@link ResourcesOptions}. */
export interface ResourceSamplerSource {
  /** Replaces `/` for every file that is read (`<root>/proc/self/cgroup`, …). @default '/' */
  root?: string;
  /** Monotonic clock, milliseconds. @default performance.now */
  now?: MonotonicClock;
}

/**
 * Creates a sampler without Nest. `intervalMs` has no effect here: sample when you like, and close it in the end.
 * @throws PERF_ERR_OPTION
 */
export function createResourceSampler(options: ResourcesOptions & ResourceSamplerSource = {}): ResourceSampler {
  const { root, now, ...resolved } = samplerRows.read(options, '');
  return new ReadingResourceSampler(new ResourceReader(root, now ?? monotonicMs), resolved);
}
