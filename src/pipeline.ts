import type { InjectionToken } from '@nestjs/common';
import { Recordings } from './ports/recording.js';
import type { RequestState } from './request/request-state.js';
import { COMPRESSION } from './compression/compression.feature.js';
import { DEFER } from './defer/defer.feature.js';
import { EVENT_LOOP } from './event-loop/event-loop.feature.js';
import { ExperimentsFeature } from './experiments/experiments.feature.js';
import type { Pipeline, RequestTracker, RequestStep } from './request/tracker.js';
import { Latency } from './latency/latency.feature.js';
import { UPSTREAM } from './upstream/upstream.feature.js';
import { UsersFeature } from './users/users.feature.js';
import { WorkFeature } from './work/work.feature.js';

/** Finds a feature that acts on requests; null where it is off. */
type FindFeature = <T>(token: InjectionToken<T>) => T | null;
type Step = RequestStep | null | undefined | false;
const steps = (list: readonly Step[]): RequestStep[] => list.filter((step) => typeof step === 'function');

/** All steps of a request, in this order. */
export function buildPipeline(find: FindFeature, { readSpan }: Pick<RequestTracker, 'readSpan'>): Pipeline {
  const eventLoop = find(EVENT_LOOP);
  const upstream = find(UPSTREAM);
  const latency = find(Latency);
  const experiments = find(ExperimentsFeature);
  const users = find(UsersFeature);
  const work = find(WorkFeature);
  const compression = find(COMPRESSION);
  const defer = find(DEFER);
  const recordings = find(Recordings);
  return {
    started: steps([
      readSpan && ((state: RequestState) => void (state.span = readSpan())),
      eventLoop && ((state) => eventLoop.started(state)),
      upstream && ((state) => upstream.started(state)),
      latency?.addsServerTiming === true && ((state) => latency.started(state)),
      compression?.engine && ((state) => compression.started(state)),
    ]),
    scoped: steps([
      // A scope within a request (a resolver) has its own upstream calls.
      upstream && ((state) => upstream.started(state)),
    ]),
    // The event loop first: records of the others wait for its blocks. Deferred work last: it starts when all is recorded.
    ended: steps([
      eventLoop && ((state) => eventLoop.ended(state)),
      upstream && ((state) => upstream.ended(state)),
      latency && ((state) => latency.ended(state)),
      experiments?.engine && ((state) => experiments.ended(state)),
      users && ((state) => users.ended(state)),
      work && ((state) => work.ended(state)),
      recordings && ((state) => recordings.ended(state)),
      defer?.engine && ((state) => state.work?.ended(state)),
    ]),
  };
}
