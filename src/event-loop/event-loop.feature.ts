import { LoopShares, Profiler } from '../ports/loop-profile.js';
import { KernelFiles, type KernelTexts } from '../ports/kernel-files.js';
import { RecordHold } from '../ports/record-hold.js';
import { PerfApplication } from '../request/application.js';
import { provideFeature, providePort, type FeatureDefinition } from '../request/feature.js';
import { DeniedNames } from '../request/safe-request.js';
import { EventLoop, type EventLoopSettings } from './event-loop.js';
import { eventLoopOption } from './event-loop.options.js';
import type { SamplerWorker } from './sampler-worker.js';

/** Reads files in the sampler's thread, once the event loop has one. */
class SamplerFiles extends KernelFiles {
  worker: SamplerWorker | null = null;

  get running(): boolean {
    return this.worker?.running === true;
  }

  read(paths: Iterable<string>): Promise<KernelTexts | null> | null {
    return this.running ? this.worker!.readFiles([...paths]) : null;
  }
}

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
      [PerfApplication, KernelFiles],
      (options: EventLoopSettings | null, application: PerfApplication, files: SamplerFiles) => {
        if (options === null) return null;
        const loop = new EventLoop(options, application);
        files.worker = loop.sampler.worker;
        return loop;
      },
    ),
    providePort(RecordHold, EventLoop, ({ pending }) => pending),
    providePort(LoopShares, EventLoop, ({ profile }) => profile),
    providePort(Profiler, EventLoop, ({ profiler }) => profiler),
    providePort(DeniedNames, EventLoop, ({ options }) => ({ names: options.replay?.denyNames ?? [] })),
  ],
};
