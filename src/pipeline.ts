import type { Recordings } from './ports/recording.js';
import type { RequestState } from './request/request-state.js';
import type { Compression } from './compression/compression.feature.js';
import type { DeferFeature } from './defer/defer.feature.js';
import type { EventLoop } from './event-loop/event-loop.js';
import type { ExperimentsFeature } from './experiments/experiments.feature.js';
import type { Pipeline, RequestTracker, RequestStep } from './request/tracker.js';
import type { Latency } from './latency/latency.feature.js';
import type { UpstreamFeature } from './upstream/upstream.feature.js';
import type { UsersFeature } from './users/users.feature.js';
import type { WorkFeature } from './work/work.feature.js';

/** The features that act on requests; null where one is off. */
export interface PipelineParts {
  readonly eventLoop: EventLoop | null;
  readonly upstream: UpstreamFeature | null;
  readonly latency: Latency | null;
  readonly experiments: ExperimentsFeature | null;
  readonly users: UsersFeature | null;
  readonly work: WorkFeature | null;
  readonly compression: Compression | null;
  readonly defer: DeferFeature | null;
  readonly recordings: Recordings | null;
}

type Step = RequestStep | null | undefined | false;
const steps = (list: readonly Step[]): RequestStep[] => list.filter((step) => typeof step === 'function');

/** All steps of a request, in this order. */
export function buildPipeline(parts: PipelineParts, requests: RequestTracker): Pipeline {
  const { eventLoop, upstream, latency, experiments, users, work, compression, defer, recordings } = parts;
  const { readSpan } = requests;
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
