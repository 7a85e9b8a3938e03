import { performance } from 'node:perf_hooks';
import type { Resolved } from '../core/option.js';
import type { Route } from '../core/route.js';
import {
  ROUTE_TIME_FIGURES,
  type RouteCalls,
  type RouteTimeFigures,
  type RouteTimeTotals,
} from '../core/route-time.js';
import type { Estimate, PerfSnapshot, RouteTime, RouteUpstream } from '../core/snapshot.js';
import { UPSTREAM_CALLS } from '../core/upstream-calls.js';
import type { Feature, FeatureDefinition, FeatureHost } from '../http/feature.js';
import { TIME_SO_FAR } from '../core/request-time.js';
import { inRootContext } from '../core/root-context.js';
import { BusyWindows, WINDOW_MS } from './busy-windows.js';
import { TREND_WINDOW_MS } from './call-trend.js';
import { Channels } from './channels.js';
import { hearNodeHttp } from './clients/node-http.js';
import { hearTraced } from './clients/traced.js';
import { hearUndici } from './clients/undici.js';
import { findingsOf } from './findings.js';
import { timed } from './timed.js';
import { Targets } from './target.js';
import { Upstream } from './upstream.js';
import { upstreamOption } from './upstream.options.js';
import { WatchedClients } from './watch/watched-clients.js';
import { routeTime, routeUpstreams, upstreamSnapshot } from './upstream-snapshot.js';

type Options = NonNullable<Resolved<typeof upstreamOption>>;

const idleMs = (): number => performance.nodeTiming.idleTime;

/** Whom requests wait for, and where their time goes. */
class UpstreamFeature implements Feature, RouteTimeFigures {
  private readonly targets: Targets;
  private readonly upstream: Upstream;
  private readonly channels: Channels;
  private readonly watched: WatchedClients;
  private readonly windows: BusyWindows;
  private timers: NodeJS.Timeout[] = [];
  private startedMs = 0;
  private startedIdleMs = 0;

  constructor(
    options: Options,
    private readonly host: FeatureHost,
  ) {
    const { requests, nowMs, report } = host;
    this.targets = new Targets(options, report);
    const clock = { nowMs, idleMs };
    this.upstream = new Upstream(this.targets, requests, clock, options.maxTimedCalls, (unplaced, calls) => {
      if (requests.contextEnabled || !requests.contextAllowed) return;
      const cause = `${unplaced} of ${calls} upstream calls could not be told whose they are`;
      const advice = '`context: true` places those of requests, and none of work beside them';
      report.report(cause, `${cause}: no route has their time. ${advice} (docs/upstream.md).`);
    });
    this.windows = new BusyWindows(clock, this.upstream.routes);
    this.channels = new Channels(report);
    this.watched = new WatchedClients(this.upstream);
    ROUTE_TIME_FIGURES.set(requests, this);
    TIME_SO_FAR.set(requests, (state) => this.upstream.splitSoFar(state));
    UPSTREAM_CALLS.set(requests, {
      timed: (target, work) => timed(this.upstream, target, work),
      watch: (client, given) => this.watched.watch(client, given),
    });
  }

  install(): void {
    this.host.requests.observe(this.upstream);
  }

  start(): void {
    this.startedMs = this.host.nowMs();
    this.startedIdleMs = idleMs();
    this.windows.begin();
    this.timers = inRootContext(() => [
      setInterval(() => this.windows.tick(), WINDOW_MS).unref(),
      setInterval(() => this.targets.all.forEach(({ trend }) => trend.tick()), TREND_WINDOW_MS).unref(),
    ]);
    for (const hear of [hearUndici, hearNodeHttp, hearTraced]) hear(this.channels, this.upstream);
  }

  timeOf(routes: readonly Route[], blockedMs: number): RouteTime | null {
    const loopBusyMs = this.host.nowMs() - this.startedMs - (idleMs() - this.startedIdleMs);
    const estimateOf = (route: Route): Estimate | null => this.windows.estimateOf(route);
    return routeTime(routes, { times: this.upstream.routes, estimateOf, blockedMs, loopBusyMs });
  }

  upstreamOf(routes: readonly Route[], count: number): RouteUpstream[] {
    return routeUpstreams(this.targets.all, routes, count);
  }

  totalsOf(route: Route): RouteTimeTotals | null {
    return this.upstream.routes.get(route) ?? null;
  }

  ownCpuMsOf(route: Route): number | null {
    return this.windows.estimateOf(route)?.mean ?? null;
  }

  *callsOf(route: Route): Generator<RouteCalls> {
    for (const { name, routes } of this.targets.all) {
      const of = routes.get(route);
      if (of !== undefined) yield { target: name, calls: of.calls, wallMs: of.wallMs };
    }
  }

  snapshot(): Pick<PerfSnapshot, 'upstream' | 'findings'> {
    const { all } = this.targets;
    return { upstream: upstreamSnapshot(all), findings: findingsOf(all, this.upstream.routes) };
  }

  drain(): void {
    this.channels.close();
    this.watched.close();
    for (const timer of this.timers) clearInterval(timer);
  }
}

export const upstreamFeature: FeatureDefinition<'upstream', Options> = {
  name: 'upstream',
  title: 'upstream calls',
  observes: 'context',
  option: upstreamOption,
  create: (options, host) => (options === null ? {} : new UpstreamFeature(options, host)),
};
