import type { InjectionToken } from '@nestjs/common';
import { LoopShares, Profiler } from '../ports/loop-profile.js';
import { KernelFiles } from '../ports/kernel-files.js';
import { RecordHold } from '../ports/record-hold.js';
import { PerfApplication } from '../request/application.js';
import { provideFeature, providePort, type FeatureDefinition } from '../request/feature.js';
import { DeniedNames } from '../request/safe-request.js';
import type { EventLoop } from './event-loop.js';
import { eventLoopOption, type EventLoopSettings } from './event-loop.options.js';

export const EVENT_LOOP = Symbol('PERF_EVENT_LOOP') as InjectionToken<EventLoop>;

export const eventLoopFeature: FeatureDefinition<'eventLoop', EventLoopSettings> = {
  name: 'eventLoop',
  title: 'event loop',
  observes: 'requests',
  option: eventLoopOption,
  token: EVENT_LOOP,
  providers: [
    provideFeature(
      'eventLoop',
      EVENT_LOOP,
      [PerfApplication],
      async (options: EventLoopSettings | null, application: PerfApplication) => {
        if (options === null) return null;
        const { EventLoop } = await import('./event-loop.js');
        return new EventLoop(options, application);
      },
    ),
    providePort(KernelFiles, EVENT_LOOP, ({ sampler }) => sampler.worker),
    providePort(RecordHold, EVENT_LOOP, ({ pending }) => pending),
    providePort(LoopShares, EVENT_LOOP, ({ profile }) => profile),
    providePort(Profiler, EVENT_LOOP, ({ profiler }) => profiler),
    providePort(DeniedNames, EVENT_LOOP, ({ options }) => ({ names: options.replay?.denyNames ?? [] })),
  ],
};
