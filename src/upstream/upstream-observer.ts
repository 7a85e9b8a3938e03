import { performance } from 'node:perf_hooks';
import type { LoopShares } from '../ports/loop-profile.js';
import type { Resolved } from '../core/option.js';
import { isThenable } from '../core/thenable.js';
import type { Route } from '../request/routes.js';
import { type RouteCalls, RouteTimeFigures, type RouteTimeTotals } from '../ports/route-time.js';
import type { PerfSnapshot, RouteTime, RouteUpstream } from '../core/snapshot.js';
import { UpstreamCalls } from '../ports/upstream-calls.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature } from '../request/feature.js';
import { Channels } from './channels.js';
import { findExports } from './clients/exporters.js';
import { subscribeNodeHttp } from './clients/node-http.js';
import { subscribeRedis } from './clients/redis.js';
import { subscribeUndici } from './clients/undici.js';
import { listFindings } from './findings.js';
import { Targets } from './target.js';
import { Upstream } from './upstream.js';
import type { upstreamOption } from './upstream.options.js';
import { readTimes } from './request-time.js';
import { settling } from './watch/surround.js';
import { WatchedClients } from './watch/watched-clients.js';
import { routeTime, routeUpstreams, upstreamSnapshot } from './upstream-snapshot.js';

type Options = NonNullable<Resolved<typeof upstreamOption>>;

const NO_CALLS = { calls: 0, wallMs: 0 };
const { nodeTiming } = performance;
const idleMs = (): number => nodeTiming.idleTime;

/** The feature `upstream`: subscribes to the clients, and has the figures for routes, snapshot and findings. */
export class UpstreamObserver extends Upstream implements Feature, RouteTimeFigures, UpstreamCalls {
  private readonly channels: Channels;
  private readonly watched: WatchedClients;

  constructor(
    options: Options,
    { requests, nowMs, report }: PerfApplication,
    private readonly shares: LoopShares | null,
  ) {
    super(new Targets(options, report), requests, { nowMs, idleMs }, options.maxTimedCalls);
    this.channels = new Channels(report);
    this.watched = new WatchedClients(this);
  }

  /** Runs `work` as a call to `target`, until what it returns has settled. Passes on its value and its error. */
  timed<T>(target: string, work: () => T): T {
    const call = this.begin(this.targets.named(target, 'other'), null);
    const result = settling(work, call);
    if (!isThenable(result)) call?.end(false);
    return result;
  }

  watch(client: object, options?: { target?: string }): void {
    this.watched.watch(client, options);
  }

  countUnplaced(): ReadonlyMap<string, number> {
    return new Map(this.targets.all.map(({ name, unplaced }) => [name, unplaced]));
  }

  start(): void {
    const isExport = findExports();
    subscribeUndici(this.channels, this, isExport);
    subscribeNodeHttp(this.channels, this, isExport);
    subscribeRedis(this.channels, this);
    this.watched.subscribe(this.channels);
  }

  readTime(routes: readonly Route[], blockedMs: number): RouteTime | null {
    return routeTime(routes, this.shares, blockedMs);
  }

  readUpstream(routes: readonly Route[], count: number): RouteUpstream[] {
    return routeUpstreams(this.targets.all, routes, count);
  }

  readTotals(route: Route): RouteTimeTotals | null {
    const times = readTimes(route);
    return times === null ? null : Object.assign({ ownMs: this.shares?.sampledMs(route) ?? null }, times);
  }

  *readCalls(route: Route): Generator<RouteCalls> {
    for (const { name, routes } of this.targets.all) {
      const { calls, wallMs } = routes.get(route) ?? NO_CALLS;
      if (calls > 0) yield { target: name, calls, wallMs };
    }
  }

  snapshot(): Pick<PerfSnapshot, 'upstream' | 'findings'> {
    const { all } = this.targets;
    return { upstream: upstreamSnapshot(all), findings: listFindings(all) };
  }

  drain(): void {
    this.channels.close();
    this.watched.close();
  }
}
