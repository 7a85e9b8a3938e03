import type { MonotonicClock } from '../core/clock.js';
import type { ResourceSample } from '../core/record.js';
import type { Recorder } from '../core/recorder.js';
import type { Reporter } from '../core/reporter.js';
import type { SchedulingPressure } from '../core/scheduling.js';
import { disagreement, nodeFigures } from './node-figures.js';
import { ResourceDiagnostics } from './resource-diagnostics.js';
import { ResourceReader } from './resource-reader.js';
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
  private readonly history: SchedulingHistory;
  private readonly reader: ResourceReader;
  private readonly published: ResourceSampler;
  private readonly watched: ResourceSampler;
  private readonly compared: ResourceSampler;
  private readonly diagnostics: ResourceDiagnostics;
  private timers: NodeJS.Timeout[] = [];

  constructor(
    private readonly options: ResolvedResourcesOptions | null,
    private readonly recorder: Pick<Recorder, 'wanted' | 'push'>,
    private readonly reporter: Reporter,
    now: MonotonicClock,
  ) {
    const settings = options ?? resolveResourcesOptions({}, 'resources');
    const reader = new ResourceReader('/', now);
    this.reader = reader;
    this.sampler = new ReadingResourceSampler(reader, settings);
    this.published = new ReadingResourceSampler(reader, settings);
    this.watched = new ReadingResourceSampler(reader, settings);
    this.compared = new ReadingResourceSampler(reader, settings);
    this.history = new SchedulingHistory(() => reader.scheduling());
    this.diagnostics = new ResourceDiagnostics(reporter);
  }

  /** The sample that was published last, at first the one of the start; null with the feature off. */
  get latest(): ResourceSample | null {
    return this.published.latest;
  }

  /** For the event loop; null with the feature off. */
  get scheduling(): SchedulingPressure | null {
    return this.options === null ? null : this.history;
  }

  /** A sample for experiments, which compare time slices: what a `ResourceRecord` of this moment would say. */
  sampleNow(): ResourceSample {
    return this.compared.sample();
  }

  start(): void {
    if (this.options === null || this.timers.length > 0) return;
    const { intervalMs } = this.options;
    const first = this.published.sample();
    this.history.look();
    this.diagnostics.start(first);
    const wrong = disagreement(first.limits, nodeFigures());
    if (wrong !== null) this.reporter.log(wrong);
    this.timers = [
      setInterval(this.watch, Math.min(WATCH_EVERY_MS, intervalMs)).unref(),
      setInterval(this.publish, intervalMs).unref(),
    ];
  }

  /** Stops the timers and gives back every descriptor. */
  stop(): void {
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [];
    this.reader.close();
  }

  private readonly watch = (): void => {
    this.history.look();
    this.diagnostics.watch(this.watched.sample());
  };

  private readonly publish = (): void => {
    const sample = this.published.sample();
    this.diagnostics.report(sample);
    if (this.recorder.wanted) this.recorder.push({ kind: 'resource', sample });
  };
}
