import type { InjectionToken } from '@nestjs/common';
import { PerfApplication } from '../request/application.js';
import { provideFeature, type Feature, type FeatureBoot, type FeatureDefinition } from '../request/feature.js';
import type { Compression } from './compression.js';
import { compressionOption, type ResolvedCompression } from './compression.options.js';
import { checkHandlers } from './handler-metadata.js';

export const COMPRESSION = Symbol('PERF_COMPRESSION') as InjectionToken<Compression | CompressionOff>;

/** Compression with its option off: misplaced decorators still stop the boot, and `@SharedResponse()` without effect is logged. */
class CompressionOff implements Feature {
  readonly engine = null;

  constructor(private readonly application: PerfApplication) {}

  install({ modules, handlers, platform }: FeatureBoot): void {
    if (platform === null) return;
    const { enabled, logger } = this.application;
    const shared = checkHandlers(modules, handlers);
    if (!enabled || shared.length === 0) return;
    logger.warn(
      `@SharedResponse() on ${shared.join(', ')} shares nothing: \`compression: false\` has switched off what it needs. ` +
        'Remove that option, or the decorator. To send a shared answer unencoded, put @NoCompression() beside it.',
    );
  }
}

export const compressionFeature: FeatureDefinition<'compression', ResolvedCompression> = {
  name: 'compression',
  title: 'compression',
  observes: 'requests',
  needsServer: true,
  option: compressionOption,
  token: COMPRESSION,
  providers: [
    provideFeature<Feature>(
      'compression',
      COMPRESSION,
      [PerfApplication],
      async (options: ResolvedCompression | null, application: PerfApplication) => {
        if (options === null) return new CompressionOff(application);
        const { Compression } = await import('./compression.js');
        return new Compression(options, application);
      },
    ),
  ],
};
