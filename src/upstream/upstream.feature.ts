import type { InjectionToken } from '@nestjs/common';
import type { Resolved } from '../core/option.js';
import { LoopShares } from '../ports/loop-profile.js';
import { RouteTimeFigures } from '../ports/route-time.js';
import { UpstreamCalls } from '../ports/upstream-calls.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type FeatureDefinition } from '../request/feature.js';
import { upstreamOption } from './upstream.options.js';
import type { UpstreamObserver } from './upstream-observer.js';

type Options = NonNullable<Resolved<typeof upstreamOption>>;

export const UPSTREAM = Symbol('PERF_UPSTREAM') as InjectionToken<UpstreamObserver>;

export const upstreamFeature: FeatureDefinition<'upstream', Options> = {
  name: 'upstream',
  title: 'upstream calls',
  observes: 'requests',
  option: upstreamOption,
  token: UPSTREAM,
  providers: [
    provideFeature(
      'upstream',
      UPSTREAM,
      [PerfApplication, optionalPort(LoopShares)],
      async (options: Options | null, application: PerfApplication, shares: LoopShares | null) => {
        if (options === null) return null;
        const { UpstreamObserver } = await import('./upstream-observer.js');
        return new UpstreamObserver(options, application, shares);
      },
    ),
    ...[RouteTimeFigures, UpstreamCalls].map((port) => providePort(port, UPSTREAM)),
  ],
};
