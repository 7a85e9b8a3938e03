import { LoopShares, Profiler } from '../ports/loop-profile.js';
import { KernelFiles } from '../ports/kernel-files.js';
import { RecordHold } from '../ports/record-hold.js';
import { SchedulingPressure } from '../ports/scheduling.js';
import { PerfApplication } from '../request/application.js';
import { optionalPort, provideFeature, providePort, type FeatureDefinition } from '../request/feature.js';
import { DeniedNames } from '../request/safe-request.js';
import { EventLoop, type EventLoopSettings } from './event-loop.js';
import { eventLoopOption } from './event-loop.options.js';
import { SamplerFiles } from './sampler-files.js';

export const eventLoopFeature: FeatureDefinition<'eventLoop', EventLoopSettings> = {
  name: 'eventLoop',
  title: 'event loop',
  observes: 'requests',
  option: eventLoopOption,
  token: EventLoop,
  providers: [
    // The resources need it, and the event loop needs theirs.
    { provide: KernelFiles, useFactory: () => new SamplerFiles() },
    provideFeature(
      'eventLoop',
      EventLoop,
      [PerfApplication, optionalPort(SchedulingPressure), KernelFiles],
      (
        options: EventLoopSettings | null,
        application: PerfApplication,
        scheduling: SchedulingPressure | null,
        files: SamplerFiles,
      ) => {
        if (options === null) return null;
        const loop = new EventLoop(options, application, scheduling);
        files.connect(loop.sampler);
        return loop;
      },
    ),
    providePort(RecordHold, EventLoop, ({ pending }) => pending),
    providePort(LoopShares, EventLoop, ({ profile }) => profile),
    providePort(Profiler, EventLoop, ({ profiler }) => profiler),
    providePort(DeniedNames, EventLoop, ({ options }) => ({ names: options.replay?.denyNames ?? [] })),
  ],
};
