import { LoopShares, Profiler } from '../ports/loop-profile.js';
import { RecordHold } from '../ports/record-hold.js';
import { SchedulingPressure } from '../ports/scheduling.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type FeatureDefinition } from '../request/feature.js';
import { DeniedNames } from '../request/safe-request.js';
import { EventLoop, type EventLoopSettings } from './event-loop.js';
import { eventLoopOption } from './event-loop.options.js';

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
      [PerfApplication, optionalPort(SchedulingPressure)],
      (options: EventLoopSettings | null, application: PerfApplication, scheduling: SchedulingPressure | null) =>
        options === null ? null : new EventLoop(options, application, scheduling),
    ),
    providePort(RecordHold, EventLoop, ({ pending }) => pending),
    providePort(LoopShares, EventLoop, ({ profile }) => profile),
    providePort(Profiler, EventLoop, ({ profiler }) => profiler),
    providePort(DeniedNames, EventLoop, ({ options }) => ({ names: options.replay?.denyNames ?? [] })),
  ],
};
