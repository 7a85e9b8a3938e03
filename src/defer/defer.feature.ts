import type { InjectionToken } from '@nestjs/common';
import { RejectedList, type Rejected } from '../ports/rejected.js';
import { PerfApplication } from '../request/application.js';
import {
  provideFeature,
  providePort,
  type Feature,
  type FeatureBoot,
  type FeatureDefinition,
} from '../request/feature.js';
import { declarationsOn } from './decorator/defer-work.decorator.js';
import { deferOption, type ResolvedDeferOptions } from './defer.options.js';
import type { DeferEngine } from './defer-engine.js';
import type { DeferLifecycle } from './defer-lifecycle.js';
import { Deferrer, offError, runningDeferrers } from './deferrer.js';

/** The dashboard lists the newest dead letters. */
const DEAD_LETTERS_SHOWN = 30;

export const DEFER = Symbol('PERF_DEFER') as InjectionToken<DeferLifecycle | DeferOff>;

/** Deferred work with its option off: the service throws, and a decorated handler stops the boot. */
class DeferOff implements Feature {
  readonly engine = null;
  readonly service: Deferrer;

  constructor({ requests }: PerfApplication) {
    this.service = new Deferrer(null, requests);
  }

  /** @throws PERF_ERR_OFF naming the handler */
  install({ handlers }: FeatureBoot): void {
    runningDeferrers.add(this.service);
    const decorated = handlers.find(({ method }) => declarationsOn(method).length > 0);
    if (decorated !== undefined) throw offError(`@DeferWork on ${decorated.handler.name}`);
  }

  close(): void {
    runningDeferrers.delete(this.service);
  }
}

/** Without the data of the letters: parsing 16 MiB of it would block the event loop at each look. */
function listNewest({ durable }: DeferEngine): Rejected[] {
  const newest = durable?.dead.readPage(-DEAD_LETTERS_SHOWN, DEAD_LETTERS_SHOWN) ?? [];
  return newest.map(({ entry: { id, name }, error, rejectedAt }) => ({ id, name, error, rejectedAt }));
}

export const deferFeature: FeatureDefinition<'defer', ResolvedDeferOptions> = {
  name: 'defer',
  title: 'deferred work',
  observes: 'requests',
  service: Deferrer,
  isApplicationsOwn: true,
  option: deferOption,
  token: DEFER,
  providers: [
    provideFeature(
      'defer',
      DEFER,
      [PerfApplication],
      async (options: ResolvedDeferOptions | null, application: PerfApplication) => {
        if (options === null) return new DeferOff(application);
        const { DeferLifecycle } = await import('./defer-lifecycle.js');
        return new DeferLifecycle(options, application);
      },
    ),
    providePort(RejectedList, DEFER, ({ engine }): RejectedList | null => {
      return engine && { rejected: async () => listNewest(engine) };
    }),
  ],
};
