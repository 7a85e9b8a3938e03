import { LoopShares, Profiler } from '../ports/loop-profile.js';
import { KernelFiles } from '../ports/kernel-files.js';
import { RecordHold } from '../ports/record-hold.js';
import { PerfApplication } from '../request/application.js';
import { provideFeature, providePort, type FeatureDefinition } from '../request/feature.js';
import { DeniedNames } from '../request/safe-request.js';
import { EventLoop } from './event-loop.js';
import { eventLoopOption, type EventLoopSettings } from './event-loop.options.js';

export const eventLoopFeature: FeatureDefinition<'eventLoop', EventLoopSettings> = {
  name: 'eventLoop',
  title: 'event loop',
  observes: 'requests',
  option: eventLoopOption,
  token: EventLoop,
  providers: [
    provideFeature(
      'eventLoop',
      EventLoop,
      [PerfApplication],
      (options: EventLoopSettings | null, application: PerfApplication) =>
        options === null ? null : new EventLoop(options, application),
    ),
    providePort(KernelFiles, EventLoop, ({ sampler }) => sampler.worker),
    providePort(RecordHold, EventLoop, ({ pending }) => pending),
    providePort(LoopShares, EventLoop, ({ profile }) => profile),
    providePort(Profiler, EventLoop, ({ profiler }) => profiler),
    providePort(DeniedNames, EventLoop, ({ options }) => ({ names: options.replay?.denyNames ?? [] })),
  ],
};
