import { MAX_TIMER_MS } from '../core/clock.js';
import { CpuAllowance } from '../ports/cpu-allowance.js';
import { KernelFiles, type KernelTexts } from '../ports/kernel-files.js';
import type { HealthReason } from '../ports/overview.js';
import { SchedulingPressure } from '../ports/scheduling.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type Feature, type FeatureDefinition } from '../request/feature.js';
import { disagreement, nodeFigures } from './node-figures.js';
import { lowMemory, ResourceDiagnostics } from './resource-diagnostics.js';
import { ResourceReader, type ResourceReading } from './resource-reading.js';
import { findLimits, memoryLeft, sampleSince } from './resource-sample.js';
import { ReadingResourceSampler, ResourceSampler } from './resource-sampler.js';
import { hitMost } from './resource-window.js';
import { type ResolvedResourcesOptions, resourcesRows, resourcesOption } from './resources.options.js';
import { SchedulingHistory } from './scheduling-history.js';

/** Low memory cannot wait for the next record. */
const WATCH_EVERY_MS = 1_000;

/** The container's resources of one application. With the feature off (null) nothing runs until someone samples. */
export class ResourcesFeature implements Feature {
  readonly service: ResourceSampler;
  readonly history: SchedulingHistory;
  /** For features that size themselves by the CPU; with this feature off too. */
  readonly allowance: CpuAllowance = {
    cores: () => {
      const reading = this.reader.read();
      const limit = findLimits(reading, this.settings).cpuCores;
      return { limit, request: this.settings.cpuRequestCores, machine: reading.machine.cpus };
    },
    throttledMs: () => {
      const { anySeconds, quotas } = this.lastReading().cpuLimit;
      const seconds = anySeconds ?? quotas[0]?.throttling.throttledSeconds ?? null;
      return seconds === null ? null : seconds * 1_000;
    },
  };
  private readonly settings: ResolvedResourcesOptions;
  private readonly reader: ResourceReader;
  private readonly diagnostics: ResourceDiagnostics;
  private latest: ResourceReading | null = null;
  private readonly pending = new Set<(reading: ResourceReading) => void>();
  private watched: ResourceReading | null = null;
  /** Readings of the last record and of the one before it; at first the reading of the start. */
  private published: ResourceReading | null = null;
  private publishedBefore: ResourceReading | null = null;
  private timers: NodeJS.Timeout[] = [];

  constructor(
    private readonly options: ResolvedResourcesOptions | null,
    private readonly host: Pick<PerfApplication, 'logger' | 'nowMs'> & {
      readonly recorder: Pick<PerfApplication['recorder'], 'wanted' | 'push'>;
    },
    private readonly files: KernelFiles | null = null,
  ) {
    this.settings = options ?? resourcesRows.read({}, 'resources');
    this.reader = new ResourceReader('/', host.nowMs);
    this.service = new ReadingResourceSampler(this.reader, this.settings);
    this.history = new SchedulingHistory(() => this.reader.read());
    this.diagnostics = new ResourceDiagnostics(host.logger, this.settings.cpuLimitCores !== null);
  }

  get isOn(): boolean {
    return this.options !== null;
  }

  start(): void {
    if (this.options === null) return;
    const reading = this.reader.read();
    this.published = this.watched = this.latest = reading;
    this.history.keep(reading);
    const sample = sampleSince(null, reading, this.settings);
    this.diagnostics.start(sample);
    const wrong = disagreement(sample.limits, nodeFigures());
    if (wrong !== null) this.host.logger.log(wrong);
    const { intervalMs } = this.options;
    this.timers = [
      setInterval(this.publish, Math.min(intervalMs, MAX_TIMER_MS)),
      setInterval(this.watch, Math.min(intervalMs, WATCH_EVERY_MS)),
    ];
    for (const timer of this.timers) timer.unref();
  }

  /** The current sample; null when off. Its rates cover half an interval to one and a half, for any number of callers. */
  snapshot(): Pick<PerfSnapshot, 'resources'> {
    const { published, publishedBefore } = this;
    if (this.options === null || published === null) return { resources: null };
    const reading = this.lastReading();
    const isFresh = reading.nowMs - published.nowMs < this.options.intervalMs / 2;
    const since = isFresh ? (publishedBefore ?? published) : published;
    return { resources: sampleSince(since, reading, this.settings) };
  }

  /** Low memory, as of the last second: also before the first watch. */
  reasons(): readonly HealthReason[] {
    if (this.options === null) return [];
    const reading = this.lastReading();
    const low = lowMemory(findLimits(reading, this.settings), memoryLeft(reading, this.settings.memoryLimitBytes));
    return low === null ? [] : [{ about: 'resources', text: `memory: ${low} left` }];
  }

  drain(): void {
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [];
  }

  /** Reads in the watchdog's thread; here before it runs, and where it cannot. */
  private withReading(use: (reading: ResourceReading) => void): void {
    // The thread may be delayed: both of its readings would be of one moment.
    if (this.pending.has(use)) return;
    const { timers } = this;
    const read = (given: KernelTexts | null): void => use((this.latest = this.reader.read(given)));
    const answer = this.files?.read(this.reader.paths) ?? null;
    if (answer === null) return read(null);
    this.pending.add(use);
    void answer.then((given) => {
      this.pending.delete(use);
      // The application may have closed, or have read here, meanwhile.
      if (given !== null && timers === this.timers && given.atMs > (this.latest?.nowMs ?? 0)) read(given);
    });
  }

  private lastReading(): ResourceReading {
    return this.files?.running === true && this.latest !== null ? this.latest : this.reader.read();
  }

  private readonly watch = (): void => this.withReading(this.watchReading);

  private readonly watchReading = (reading: ResourceReading): void => {
    this.history.keep(reading);
    const leftBytes = memoryLeft(reading, this.settings.memoryLimitBytes);
    this.diagnostics.watch(sampleSince(this.watched, reading, this.settings), leftBytes);
    this.watched = reading;
  };

  private readonly publish = (): void => this.withReading(this.publishReading);

  private readonly publishReading = (reading: ResourceReading): void => {
    const sample = sampleSince(this.published, reading, this.settings);
    this.diagnostics.weighThrottling(sample, hitMost(this.published, reading));
    this.publishedBefore = this.published;
    this.published = reading;
    const { recorder } = this.host;
    if (recorder.wanted) recorder.push({ kind: 'resource', sample });
  };
}

export const resourcesFeature: FeatureDefinition<'resources', ResolvedResourcesOptions> = {
  name: 'resources',
  title: 'resources',
  observes: 'process',
  service: ResourceSampler,
  option: resourcesOption,
  token: ResourcesFeature,
  providers: [
    provideFeature(
      'resources',
      ResourcesFeature,
      [PerfApplication, optionalPort(KernelFiles)],
      (options: ResolvedResourcesOptions | null, application: PerfApplication, files: KernelFiles | null) =>
        new ResourcesFeature(options, application, files),
    ),
    providePort(CpuAllowance, ResourcesFeature, ({ allowance }) => allowance),
    providePort(SchedulingPressure, ResourcesFeature, ({ isOn, history }) => (isOn ? history : null)),
  ],
};
