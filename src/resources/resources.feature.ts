import { SAMPLE_NOW } from '../core/resource-reading.js';
import { SCHEDULING } from '../core/scheduling.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import type { ResourceSampler } from './resource-sampler.js';
import { Resources } from './resources.js';
import { resourcesOption, type ResolvedResourcesOptions } from './resources.options.js';

/** The container's resources, wired to one application. With the feature off nothing runs until somebody samples. */
class ResourcesFeature implements Feature {
  readonly service: ResourceSampler;
  private readonly resources: Resources;

  constructor(options: ResolvedResourcesOptions | null, { logger, nowMs, recorder, requests }: FeatureHost) {
    const resources = new Resources(options, recorder, logger, nowMs);
    this.resources = resources;
    this.service = resources.sampler;
    SCHEDULING.set(requests, resources.scheduling);
    SAMPLE_NOW.set(requests, () => resources.sampleNow());
  }

  start(): void {
    this.resources.start();
  }

  snapshot(): Pick<PerfSnapshot, 'resources'> {
    return { resources: this.resources.snapshot() };
  }

  drain(): void {
    this.resources.stop();
  }
}

export const resourcesFeature: FeatureDefinition<'resources', ResolvedResourcesOptions> = {
  name: 'resources',
  option: resourcesOption,
  create: (options, host) => new ResourcesFeature(options, host),
};
