import { MAX_TIMER_MS, type MonotonicClock } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import type { Recorder } from '../core/recorder.js';
import type { Reporter } from '../core/reporter.js';
import type { SchedulingPressure } from '../core/scheduling.js';
import type { ResourceReading } from './cgroup-accounts.js';
import { disagreement, nodeFigures } from './node-figures.js';
import { Pace } from './kernel/pace.js';
import { ResourceDiagnostics } from './resource-diagnostics.js';
import { ResourceReader } from './resource-reader.js';
import { sampleSince } from './resource-sample.js';
import { ReadingResourceSampler, type ResourceSampler } from './resource-sampler.js';
import { type ResolvedResourcesOptions, resolveResourcesOptions } from './resources.options.js';
import { SchedulingHistory } from './scheduling-history.js';

/**
 * Low memory cannot wait: one short file for each memory limit. In a server a read costs ten times of what it costs in a
 * loop, because of cold caches, so only what cannot wait is read each second.
 */
const WATCH_MEMORY_EVERY_MS = 1_000;
/** Without a memory limit nothing is that urgent. */
const WATCH_EVERY_MS = 5_000;

/**
 * A baseline for the event loop. What was lost around a block supports other evidence, so it need not be fresher. Less than
 * {@link WATCH_EVERY_MS}: a timer's turn may come a little early after one that came late.
 */
const LOOK_EVERY_MS = 4_900;

/** OOM kills and limits that cannot be seen; records are more frequent by default, and then tell. */
const INSPECT_EVERY_MS = 14_900;

/**
 * The resources feature of one application. With it off (options null) nothing runs and nothing is opened, until someone
 * samples. All readers share one set of descriptors, each with a baseline of its own.
 */
export class Resources {
  /** For injection: works with the feature off too. */
  readonly sampler: ResourceSampler;
  private readonly settings: ResolvedResourcesOptions;
  private readonly reader: ResourceReader;
  private readonly history: SchedulingHistory;
  private readonly diagnostics: ResourceDiagnostics;
  private inspected: ResourceReading | null = null;
  private readonly looks = new Pace(LOOK_EVERY_MS);
  private readonly inspections = new Pace(INSPECT_EVERY_MS);
  private memoryLimitBytes: number | null = null;
  private compared: ResourceReading | null = null;
  /** Of the last record and of the one before it; at first of the start. */
  private published: ResourceReading | null = null;
  private publishedBefore: ResourceReading | null = null;
  private publishTimer: NodeJS.Timeout | null = null;
  private watchTimer: NodeJS.Timeout | null = null;
  private watchEveryMs = 0;

  constructor(
    private readonly options: ResolvedResourcesOptions | null,
    private readonly recorder: Pick<Recorder, 'wanted' | 'push'>,
    private readonly reporter: Reporter,
    private readonly now: MonotonicClock,
  ) {
    this.settings = options ?? resolveResourcesOptions({}, 'resources');
    const reader = new ResourceReader('/', now);
    this.reader = reader;
    this.sampler = new ReadingResourceSampler(reader, this.settings);
    this.history = new SchedulingHistory(() => reader.scheduling());
    this.diagnostics = new ResourceDiagnostics(reporter, this.settings.cpuLimitCores !== null);
  }

  /** For the event loop; null with the feature off. */
  get scheduling(): SchedulingPressure | null {
    return this.options === null ? null : this.history;
  }

  /** A sample for experiments, which compare time slices: what a `ResourceRecord` of this moment would say. */
  sampleNow(): ResourceSample {
    const reading = this.reader.read();
    const sample = sampleSince(this.compared, reading, this.settings);
    this.compared = reading;
    return sample;
  }

  start(): void {
    if (this.options === null || this.publishTimer !== null) return;
    const reading = this.reader.read();
    this.published = reading;
    this.inspected = reading;
    this.inspections.done(reading.nowMs);
    this.looks.done(reading.nowMs);
    this.history.keep(reading);
    const sample = sampleSince(null, reading, this.settings);
    this.diagnostics.start(sample);
    const wrong = disagreement(sample.limits, nodeFigures());
    if (wrong !== null) this.reporter.log(wrong);
    // The first of the two: where both are due, its reading serves the other.
    this.publishTimer = setInterval(this.publish, Math.min(this.settings.intervalMs, MAX_TIMER_MS)).unref();
    this.limitedTo(sample.limits.memoryBytes);
  }

  /**
   * What is true now; null with the feature off or not started. Its rates are of half an interval to one and a half: since
   * the last record, or the one before it when that is too fresh. However many ask, none shortens another's window.
   */
  snapshot(): ResourceSample | null {
    const { published, publishedBefore } = this;
    if (this.options === null || published === null) return null;
    const reading = this.reader.read();
    const isFresh = reading.nowMs - published.nowMs < this.options.intervalMs / 2;
    return sampleSince(isFresh ? (publishedBefore ?? published) : published, reading, this.settings);
  }

  /** Stops the timers and gives back every descriptor. */
  stop(): void {
    if (this.publishTimer !== null) clearInterval(this.publishTimer);
    if (this.watchTimer !== null) clearInterval(this.watchTimer);
    this.publishTimer = this.watchTimer = null;
    this.watchEveryMs = 0;
    this.reader.close();
  }

  /** Limits change in place, and with the memory's how often it is watched. */
  private limitedTo(memoryLimitBytes: number | null): void {
    this.memoryLimitBytes = memoryLimitBytes;
    const everyMs =
      memoryLimitBytes === null ? WATCH_EVERY_MS : Math.min(WATCH_MEMORY_EVERY_MS, this.settings.intervalMs);
    if (everyMs === this.watchEveryMs) return;
    if (this.watchTimer !== null) clearInterval(this.watchTimer);
    this.watchEveryMs = everyMs;
    this.watchTimer = setInterval(this.watch, everyMs).unref();
  }

  private readonly watch = (): void => {
    const nowMs = this.now();
    if (this.looks.due(nowMs)) this.history.keep(this.reader.scheduling());
    const memoryMayBeLow = this.memoryMayBeLow();
    if (this.inspections.due(nowMs) || memoryMayBeLow) this.diagnostics.watch(this.inspect());
  };

  private memoryMayBeLow(): boolean {
    if (this.memoryLimitBytes === null) return false;
    // With an override what is left is not that of the cgroup's limits.
    const leftBytes = this.settings.memoryLimitBytes === null ? this.reader.memoryLeftBytes() : null;
    return this.diagnostics.memoryMayBeLow(this.memoryLimitBytes, leftBytes);
  }

  private inspect(): ResourceSample {
    const reading = this.readAll();
    const sample = sampleSince(this.inspected, reading, this.settings);
    this.inspected = reading;
    this.limitedTo(sample.limits.memoryBytes);
    return sample;
  }

  /** Everything, so what tells of lost time as well. */
  private readAll(): ResourceReading {
    const reading = this.reader.read();
    if (this.looks.due(reading.nowMs)) this.history.keep(reading);
    return reading;
  }

  private readonly publish = (): void => {
    const reading = this.readAll();
    const sample = sampleSince(this.published, reading, this.settings);
    this.publishedBefore = this.published;
    this.published = reading;
    this.limitedTo(sample.limits.memoryBytes);
    this.inspections.done(reading.nowMs);
    this.diagnostics.watchKernel(sample);
    this.diagnostics.report(sample);
    if (this.recorder.wanted) this.recorder.push({ kind: 'resource', sample });
  };
}
