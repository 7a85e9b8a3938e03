import type { Server } from 'node:http';
import { LoopShares, Profiler } from '../ports/loop-profile.js';
import type { Resolved } from '../core/option.js';
import { RecordHold } from '../ports/record-hold.js';
import type { RequestState } from '../request/request-state.js';
import { DeniedNames } from '../request/safe-request.js';
import { SchedulingPressure } from '../ports/scheduling.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { PerfApplication } from '../request/application.js';
import {
  optionalPort,
  provideFeature,
  providePort,
  type Feature,
  type FeatureBoot,
  type FeatureDefinition,
} from '../request/feature.js';
import { EventLoop } from './event-loop.js';
import { eventLoopOption, SAMPLES_PER_SECOND } from './event-loop.options.js';
import { LoopProfile } from './profile/loop-profile.js';
import { LoopProfiler } from './profile/profiler.js';

type Options = NonNullable<Resolved<typeof eventLoopOption>>;

/** The event loop of one application: blocks, and the profile by route. */
export class EventLoopFeature implements Feature {
  readonly loop: EventLoop;
  readonly profile: LoopProfile | null;
  readonly profiler: LoopProfiler | null;

  constructor(
    readonly options: Options,
    { requests, recorder, report, nowMs, logger }: PerfApplication,
    scheduling: SchedulingPressure | null,
  ) {
    this.profile = options.profile ? new LoopProfile(requests, nowMs) : null;
    this.loop = new EventLoop(options, requests, recorder, report, scheduling, this.profile, logger);
    this.profiler =
      this.profile === null
        ? null
        : new LoopProfiler(
            this.profile,
            (perSecond) => this.loop.sampler.setRate(perSecond ?? SAMPLES_PER_SECOND),
            (positions) => this.loop.sampler.locate(positions),
            nowMs,
          );
  }

  install({ adapter, modules }: FeatureBoot): void {
    this.loop.install(adapter?.getHttpServer() as Server | undefined, modules);
  }

  start(): void {
    this.loop.start();
  }

  started(state: RequestState): void {
    this.loop.started(state);
  }

  ended(state: RequestState): void {
    this.loop.ended(state);
  }

  snapshot(): Pick<PerfSnapshot, 'eventLoop'> {
    return { eventLoop: this.loop.snapshot() };
  }

  idle(): Promise<void> {
    return this.loop.settled();
  }

  async drain(): Promise<void> {
    this.profiler?.close();
    await this.loop.close();
  }
}

export const eventLoopFeature: FeatureDefinition<'eventLoop', Options> = {
  name: 'eventLoop',
  title: 'event loop',
  observes: 'requests',
  option: eventLoopOption,
  token: EventLoopFeature,
  providers: [
    provideFeature(
      'eventLoop',
      EventLoopFeature,
      [PerfApplication, optionalPort(SchedulingPressure)],
      (options: Options | null, application: PerfApplication, scheduling: SchedulingPressure | null) =>
        options === null ? null : new EventLoopFeature(options, application, scheduling),
    ),
    providePort(RecordHold, EventLoopFeature, ({ loop }) => loop.pending),
    providePort(LoopShares, EventLoopFeature, ({ profile }) => profile),
    providePort(Profiler, EventLoopFeature, ({ profiler }) => profiler),
    providePort(DeniedNames, EventLoopFeature, ({ options }) => ({ names: options.replay?.denyNames ?? [] })),
  ],
};
