import { CpuAllowance } from '../ports/cpu-allowance.js';
import { KernelFiles } from '../ports/kernel-files.js';
import type { HealthReason } from '../ports/overview.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type Feature, type FeatureDefinition } from '../request/feature.js';
import { findContainerReasons, lowMemory, ResourceDiagnostics } from './resource-diagnostics.js';
import { ResourceReader, type ResourceReading } from './resource-reading.js';
import { findLimits, memoryLeft, sampleSince } from './resource-sample.js';
import { ReadingResourceSampler, ResourceSampler } from './resource-sampler.js';
import { type ResolvedResourcesOptions, resourcesRows, resourcesOption } from './resources.options.js';

/** Files are read so often at the least: low memory cannot wait for the next record. */
const READ_EVERY_MS = 1_000;

/** The container's resources of one application. With the feature off (null) nothing runs until someone samples. */
export class ResourcesFeature implements Feature {
  readonly service: ResourceSampler;
  /** For features that size themselves by the CPU; with this feature off too. */
  readonly allowance: CpuAllowance = {
    cores: () => {
      const reading = this.lastReading();
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
  /** The thread has not answered yet. */
  private isReading = false;
  private readingsSince = 0;
  /** Readings of the last record and of the one before it; at first the reading of the start. */
  private published: ResourceReading | null = null;
  private publishedBefore: ResourceReading | null = null;
  private timer: NodeJS.Timeout | null = null;

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
    this.diagnostics = new ResourceDiagnostics(host.logger, this.settings.cpuLimitCores !== null);
  }

  start(): void {
    if (this.options === null) return;
    const reading = this.reader.read();
    this.published = this.latest = reading;
    this.diagnostics.start(sampleSince(null, reading, this.settings));
    const { intervalMs } = this.options;
    this.timer = setInterval(this.read, intervalMs / this.readingsOfRecord).unref();
  }

  private get readingsOfRecord(): number {
    return Math.ceil(this.settings.intervalMs / READ_EVERY_MS);
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

  /** Low memory is as of the last second: a sample lacks what the kernel could reclaim. */
  reasons({ resources }: Pick<PerfSnapshot, 'resources'>): readonly HealthReason[] {
    if (this.options === null) return [];
    const reading = this.lastReading();
    const low = lowMemory(findLimits(reading, this.settings), memoryLeft(reading, this.settings.memoryLimitBytes));
    return [
      ...(resources === null ? [] : findContainerReasons(resources)),
      ...(low === null ? [] : [{ about: 'resources' as const, text: `memory: ${low} left` }]),
    ];
  }

  drain(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  /** Reads in the sampler's thread; here before it runs, and where it cannot. */
  private readonly read = (): void => {
    if (this.isReading) return;
    const { files, reader } = this;
    if (files?.running !== true) return this.take(reader.read());
    this.isReading = true;
    void files.readFiles(reader.paths).then((given) => {
      this.isReading = false;
      // The application may have closed, or have read here, meanwhile.
      if (given !== null && this.timer !== null && given.atMs > (this.latest?.nowMs ?? 0))
        this.take(reader.read(given));
    });
  };

  private take(reading: ResourceReading): void {
    const leftBytes = memoryLeft(reading, this.settings.memoryLimitBytes);
    this.diagnostics.watch(sampleSince(this.latest, reading, this.settings), leftBytes);
    this.latest = reading;
    this.readingsSince += 1;
    if (this.readingsSince < this.readingsOfRecord) return;
    this.readingsSince = 0;
    const sample = sampleSince(this.published, reading, this.settings);
    this.diagnostics.weighThrottling(sample);
    this.publishedBefore = this.published;
    this.published = reading;
    const { recorder } = this.host;
    if (recorder.wanted) recorder.push({ kind: 'resource', sample });
  }

  private lastReading(): ResourceReading {
    return this.files?.running === true && this.latest !== null ? this.latest : this.reader.read();
  }
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
  ],
};
