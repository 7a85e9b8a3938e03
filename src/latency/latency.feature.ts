import type { Resolved } from '../core/option.js';
import { epochMsOf } from '../core/clock.js';
import { LATENCY_FIGURES, type CountedRoute, type LatencyFigures } from '../core/latency-figures.js';
import type { RequestRecord, Unit } from '../core/record.js';
import { RECORD_HOLD } from '../core/record-hold.js';
import type { Recorder } from '../core/recorder.js';
import type { RequestState } from '../core/request-state.js';
import { TIME_SPLIT } from '../core/request-time.js';
import { IGNORED, isMeasured, ROUTE_BLOCKS, type Route } from '../core/route.js';
import { ROUTE_TIME_FIGURES } from '../core/route-time.js';
import type { RouteHistogram } from '../core/sink.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import { REDACT_USER, UNIT_OF_EXPERIMENTS } from '../core/users.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import type { RequestObserver } from '../http/lifecycle.js';
import { globOf } from './glob.js';
import { latencyOption } from './latency.options.js';
import { ROUTE_STATS, RouteStats, snapshotRoutes } from './route-stats.js';
import { addServerTiming } from './server-timing.js';

type Options = NonNullable<Resolved<typeof latencyOption>>;

/** One record and one histogram entry a request, written when it has ended. */
class Latency implements Feature, RequestObserver, LatencyFigures {
  private readonly ignored: readonly RegExp[];
  private wanted: Recorder['requestsWanted'] = 'none';

  constructor(
    private readonly options: Options,
    private readonly host: FeatureHost,
  ) {
    this.ignored = options.ignore.map(globOf);
    LATENCY_FIGURES.set(host.requests, this);
  }

  install(): void {
    const { recorder, requests, routes, nowMs } = this.host;
    this.wanted = recorder.requestsWanted;
    routes.listen((route) => this.measure(route));
    requests.observe(this);
    if (this.options.serverTiming) requests.observe({ started: (state) => addServerTiming(state, nowMs) });
  }

  ended(state: RequestState): void {
    const { route } = state;
    const stats = route === null ? null : ROUTE_STATS.get(route);
    if (stats === null) return;
    const durationMs = state.endedMs - state.startedMs;
    if (state.aborted) stats.abortedCount += 1;
    else stats.completed(state.status, durationMs);
    if (this.wanted !== 'all' && (this.wanted === 'none' || durationMs <= stats.slowMs)) return;
    const hold = RECORD_HOLD.get(this.host.requests);
    if (hold === null || !hold.hold(state, this.record)) this.record(state);
  }

  private readonly record = (state: RequestState): void => {
    this.host.recorder.push(requestRecordOf(state, this.host, ROUTE_STATS.get(state.route!)!.slowMs));
  };

  *snapshotSteps(): Steps<Pick<PerfSnapshot, 'routes'>> {
    const { requests, routes } = this.host;
    const inFlight = new Map<Route, number>();
    for (const { route, request } of requests.states()) {
      // In middleware still: without a route so far.
      const own = route ?? (request === null ? null : routes.unmatched.forMethod(request.method));
      if (own !== null) inFlight.set(own, (inFlight.get(own) ?? 0) + 1);
    }
    const figures = ROUTE_TIME_FIGURES.get(requests);
    return { routes: yield* snapshotRoutes(routes.all, inFlight, this.options.overMs, figures) };
  }

  *histograms(): Iterable<RouteHistogram> {
    for (const route of this.host.routes.all) {
      for (const [status, histogram] of ROUTE_STATS.get(route)?.byStatus ?? []) {
        yield {
          method: route.method,
          route: route.pattern,
          handler: route.handler?.name ?? null,
          status,
          count: histogram.count,
          sumMs: histogram.sumMs,
          countsAtMost: (boundsMs) => histogram.countsAtMost(boundsMs),
        };
      }
    }
  }

  *totals(): Iterable<CountedRoute> {
    for (const route of this.host.routes.all) {
      const stats = ROUTE_STATS.get(route);
      if (stats === null) continue;
      const { byStatus, abortedCount, blockedMs } = stats;
      const over = this.options.overMs.map((ms, index) => ({ ms, count: stats.over[index] ?? 0 }));
      yield { route, byStatus, abortedCount, over, blockedMs };
    }
  }

  private measure(route: Route): void {
    if (this.ignored.some((glob) => glob.test(route.pattern))) IGNORED.set(route, true);
    if (!isMeasured(route)) return;
    const { overMs, slowMs } = this.options;
    const stats = new RouteStats(overMs, route.handler?.slowMs ?? slowMs);
    ROUTE_STATS.set(route, stats);
    ROUTE_BLOCKS.set(route, stats);
  }
}

/** Whom it was for, redacted where that is asked for. */
function unitOf(state: RequestState, { requests, units }: FeatureHost): Unit | null {
  const unit = state.unit ?? units.of(state);
  const redact = REDACT_USER.get(requests);
  // Where nobody is known, experiments put the request's id.
  return unit === null || redact === null || unit.userId === state.id ? unit : { userId: redact(unit.userId) };
}

function requestRecordOf(state: RequestState, host: FeatureHost, slowMs: number): RequestRecord {
  const { route, span } = state;
  const durationMs = state.endedMs - state.startedMs;
  const split = TIME_SPLIT.get(state);
  const record: RequestRecord = {
    kind: 'request',
    id: state.id,
    method: route?.method ?? '_OTHER',
    route: route?.pattern ?? '',
    handler: route?.handler?.name ?? null,
    status: state.status,
    outcome: state.aborted ? 'aborted' : 'completed',
    startedAt: epochMsOf(state.startedMs),
    durationMs,
    blockedMs: state.blockedMs,
    delayedMs: state.delayedMs,
    variants: state.variants,
    unit: unitOf(state, host),
    note: state.note,
    release: host.release,
    time: split?.time ?? null,
    upstream: split?.upstream ?? null,
  };
  if (durationMs > slowMs && !state.aborted) record.slow = true;
  if (state.unit !== null && state.unit !== record.unit) UNIT_OF_EXPERIMENTS.set(record, state.unit);
  if (span !== null) {
    record.traceId = span.traceId;
    record.spanId = span.spanId;
  }
  return record;
}

export const latencyFeature: FeatureDefinition<'latency', Options> = {
  name: 'latency',
  title: 'latency',
  observes: 'requests',
  option: latencyOption,
  create: (options, host) => (options === null ? {} : new Latency(options, host)),
};
