import type { MonotonicClock } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import type { Recorder } from '../core/recorder.js';
import type { Reporter } from '../core/reporter.js';
import type { SchedulingPressure } from '../core/scheduling.js';
import type { ResourceReading } from './cgroup-accounts.js';
import { disagreement, nodeFigures } from './node-figures.js';
import { ResourceDiagnostics } from './resource-diagnostics.js';
import { ResourceReader } from './resource-reader.js';
import { sampleSince } from './resource-sample.js';
import { ReadingResourceSampler, type ResourceSampler } from './resource-sampler.js';
import { type ResolvedResourcesOptions, resolveResourcesOptions } from './resources.options.js';
import { SchedulingHistory } from './scheduling-history.js';

/** Low memory and OOM kills cannot wait for the next record. A sample costs about 30 µs, so this is 0.003 % of a core. */
const WATCH_EVERY_MS = 1_000;

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
  private watched: ResourceReading | null = null;
  private compared: ResourceReading | null = null;
  /** Of the last record and of the one before it; at first of the start. */
  private published: ResourceReading | null = null;
  private publishedBefore: ResourceReading | null = null;
  private timers: NodeJS.Timeout[] = [];

  constructor(
    private readonly options: ResolvedResourcesOptions | null,
    private readonly recorder: Pick<Recorder, 'wanted' | 'push'>,
    private readonly reporter: Reporter,
    now: MonotonicClock,
  ) {
    this.settings = options ?? resolveResourcesOptions({}, 'resources');
    const reader = new ResourceReader('/', now);
    this.reader = reader;
    this.sampler = new ReadingResourceSampler(reader, this.settings);
    this.history = new SchedulingHistory(() => reader.scheduling());
    this.diagnostics = new ResourceDiagnostics(reporter);
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
    if (this.options === null || this.timers.length > 0) return;
    const reading = this.reader.read();
    this.published = reading;
    this.watched = reading;
    this.history.keep(reading);
    const sample = sampleSince(null, reading, this.settings);
    this.diagnostics.start(sample);
    const wrong = disagreement(sample.limits, nodeFigures());
    if (wrong !== null) this.reporter.log(wrong);
    const { intervalMs } = this.options;
    this.timers = [
      setInterval(this.watch, Math.min(WATCH_EVERY_MS, intervalMs)).unref(),
      setInterval(this.publish, intervalMs).unref(),
    ];
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
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [];
    this.reader.close();
  }

  private readonly watch = (): void => {
    const reading = this.reader.read();
    this.diagnostics.watch(sampleSince(this.watched, reading, this.settings));
    this.history.keep(reading);
    this.watched = reading;
  };

  private readonly publish = (): void => {
    const reading = this.reader.read();
    const sample = sampleSince(this.published, reading, this.settings);
    this.publishedBefore = this.published;
    this.published = reading;
    this.diagnostics.report(sample);
    if (this.recorder.wanted) this.recorder.push({ kind: 'resource', sample });
  };
}
