import type { Resolved } from '../core/option.js';
import { LATENCY_FIGURES, type LatencyFigures } from '../core/latency-figures.js';
import { RECORD_HOLD } from '../core/record-hold.js';
import type { RequestState } from '../core/request-state.js';
import { ROUTE_BLOCKS, type Route } from '../core/route.js';
import { ROUTE_TIME_FIGURES } from '../core/route-time.js';
import type { RouteHistogram } from '../core/sink.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Feature, FeatureBoot, FeatureDefinition, FeatureHost } from '../http/feature.js';
import type { RequestObserver } from '../http/lifecycle.js';
import { latencyOption } from './latency.options.js';
import { requestRecordOf } from './request-record.js';
import { routeHistograms, snapshotRoutes } from './route-snapshot.js';
import { ROUTE_STATS, RouteStats } from './route-stats.js';
import { addServerTiming } from './server-timing.js';

type Options = NonNullable<Resolved<typeof latencyOption>>;

/** One record and one histogram entry a request, written when it has ended. */
class Latency implements Feature, RequestObserver, LatencyFigures {
  private readonly ignored: ReadonlySet<string>;
  private readonly recordOverMs: number;

  constructor(
    private readonly options: Options,
    private readonly host: FeatureHost,
  ) {
    this.ignored = new Set(options.ignore);
    this.recordOverMs = host.recorder.recordRequestsOverMs(options.slowMs);
    LATENCY_FIGURES.set(host.requests, this);
  }

  get slowMs(): number {
    return this.options.slowMs;
  }

  install({ platform }: FeatureBoot): void {
    const { requests, routes, nowMs } = this.host;
    routes.listen((route) => this.measure(route));
    requests.observe(this);
    if (this.options.serverTiming && platform !== null) {
      requests.observe({ started: (state) => addServerTiming(state, platform, nowMs) });
    }
  }

  ended(state: RequestState): void {
    const { route } = state;
    const stats = route === null ? null : ROUTE_STATS.get(route);
    if (stats === null) return;
    const durationMs = state.endedMs - state.startedMs;
    if (state.aborted) stats.aborted();
    else stats.completed(state.status, durationMs);
    if (!(durationMs > this.recordOverMs)) return;
    const hold = RECORD_HOLD.get(this.host.requests);
    if (hold === null || !hold.hold(state, this.record)) this.record(state);
  }

  private readonly record = (state: RequestState): void => {
    this.host.recorder.push(requestRecordOf(state));
  };

  snapshot(): Pick<PerfSnapshot, 'routes'> {
    const inFlight = new Map<Route, number>();
    for (const { route } of this.host.requests.states()) {
      if (route !== null) inFlight.set(route, (inFlight.get(route) ?? 0) + 1);
    }
    const { requests, routes } = this.host;
    const figures = ROUTE_TIME_FIGURES.get(requests);
    return { routes: snapshotRoutes(routes.all, inFlight, this.options.overMs, figures) };
  }

  histograms(): Iterable<RouteHistogram> {
    return routeHistograms(this.host.routes.all);
  }

  private measure(route: Route): void {
    if (route.handler?.skipped === true || this.ignored.has(route.pattern)) return;
    const stats = new RouteStats(this.options.overMs);
    ROUTE_STATS.set(route, stats);
    ROUTE_BLOCKS.set(route, stats);
  }
}

export const latencyFeature: FeatureDefinition<'latency', Options> = {
  name: 'latency',
  option: latencyOption,
  create: (options, host) => (options === null ? {} : new Latency(options, host)),
};
