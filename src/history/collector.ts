import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { Histogram } from '../core/histogram.js';
import type { LatencyFigures, RouteTotals } from '../core/latency-figures.js';
import { routeName, type Route } from '../core/route.js';
import type { RouteTimeFigures, RouteTimeTotals } from '../core/route-time.js';
import type { SchedulingPressure } from '../core/scheduling.js';
import { RouteWindow, SiteWindow } from './rows/window.js';

/** Fewer requests that were alone in flight say too little of their own work. */
const MIN_ALONE = 5;

/** The counters that other features keep anyway; null with a feature off. */
export interface Counters {
  readonly latency: LatencyFigures | null;
  readonly times: RouteTimeFigures | null;
  readonly scheduling: SchedulingPressure | null;
}

/** What one route had counted when it was last looked at. */
interface Before {
  readonly histogram: Histogram;
  readonly errors: number;
  readonly aborted: number;
  readonly over: readonly number[];
  readonly blockedMs: number;
}
const NOTHING: Before = { histogram: new Histogram(), errors: 0, aborted: 0, over: [], blockedMs: 0 };
const NO_TIME: RouteTimeTotals = { count: 0, upstreamMs: 0, busyMs: 0, upstreamBusyMs: 0, aloneCount: 0, aloneMs: 0 };

/** Takes what was counted since it last looked. It looks once a minute, and costs requests nothing. */
export class Collector {
  private readonly routes = new Map<Route, Before>();
  private readonly times = new Map<Route, RouteTimeTotals>();
  private readonly calls = new Map<string, Map<Route, { readonly calls: number; readonly wallMs: number }>>();
  private loop = performance.eventLoopUtilization();
  private throttledMs: number | null = null;

  constructor(private readonly counters: () => Counters) {}

  collect(): SiteWindow {
    const { latency, times, scheduling } = this.counters();
    const site = new SiteWindow();
    for (const totals of latency?.totals() ?? []) this.takeRoute(totals, site, times);
    for (const { target, route, calls, wallMs } of times?.calls() ?? []) {
      let byRoute = this.calls.get(target);
      if (byRoute === undefined) this.calls.set(target, (byRoute = new Map()));
      const before = byRoute.get(route) ?? { calls: 0, wallMs: 0 };
      if (calls === before.calls) continue;
      byRoute.set(route, { calls, wallMs });
      site.routes.get(routeName(route))?.called(target, calls - before.calls, wallMs - before.wallMs);
    }
    this.takeProcess(site, scheduling);
    return site;
  }

  private takeRoute(totals: RouteTotals, site: SiteWindow, times: RouteTimeFigures | null): void {
    const { route, byStatus, abortedCount: aborted, blockedMs } = totals;
    const before = this.routes.get(route) ?? NOTHING;
    let [completed, errors] = [0, 0];
    for (const [status, { count }] of byStatus) {
      completed += count;
      if (status >= 500) errors += count;
    }
    if (completed === before.histogram.count && aborted === before.aborted && blockedMs === before.blockedMs) return;
    const histogram = new Histogram();
    for (const one of byStatus.values()) histogram.merge(one);
    const over = totals.over.map(({ count }) => count);
    this.routes.set(route, { histogram, errors, aborted, over, blockedMs });
    const window = new RouteWindow();
    const fresh = histogram.since(before.histogram);
    window.histogram.merge(fresh);
    window.completed = fresh.count;
    window.sumMs = fresh.sumMs;
    window.aborted = aborted - before.aborted;
    window.errors = errors - before.errors;
    window.blockedMs = blockedMs - before.blockedMs;
    totals.over.forEach(({ ms, count }, index) => window.over.set(ms, count - (before.over[index] ?? 0)));
    this.takeTime(route, window, times);
    site.routeOf(routeName(route)).merge(window);
  }

  private takeTime(route: Route, window: RouteWindow, times: RouteTimeFigures | null): void {
    const now = times?.totalsOf(route) ?? null;
    if (now === null) return;
    const before = this.times.get(route) ?? NO_TIME;
    const { count, upstreamMs, busyMs, upstreamBusyMs, aloneCount, aloneMs } = now;
    this.times.set(route, { count, upstreamMs, busyMs, upstreamBusyMs, aloneCount, aloneMs });
    window.timed = count - before.count;
    window.upstreamMs = upstreamMs - before.upstreamMs;
    window.busyMs = busyMs - before.busyMs;
    window.upstreamBusyMs = upstreamBusyMs - before.upstreamBusyMs;
    const alone = aloneCount - before.aloneCount;
    const ownMs = alone >= MIN_ALONE ? (aloneMs - before.aloneMs) / alone : (times?.ownCpuMsOf(route) ?? null);
    if (ownMs === null || window.timed === 0) return;
    window.ownOf = window.timed;
    window.ownMs = Math.min(window.busyMs, ownMs * window.timed);
  }

  private takeProcess({ process }: SiteWindow, scheduling: SchedulingPressure | null): void {
    const now = performance.eventLoopUtilization();
    const { active, idle } = performance.eventLoopUtilization(now, this.loop);
    this.loop = now;
    process.observedMs = active + idle;
    process.busyMs = active;
    const throttledMs = scheduling?.throttledMs ?? null;
    if (throttledMs !== null) process.throttledMs = throttledMs - (this.throttledMs ?? 0);
    this.throttledMs = throttledMs;
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    process.heapRatio = limit > 0 ? used / limit : 0;
  }
}
