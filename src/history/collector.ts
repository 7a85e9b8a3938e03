import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { Histogram } from '../core/histogram.js';
import type { LatencyFigures, RouteTotals } from '../core/latency-figures.js';
import { routeName, type Route } from '../core/route.js';
import type { RouteTimeFigures, RouteTimeTotals } from '../core/route-time.js';
import type { SchedulingPressure } from '../core/scheduling.js';
import { ProcessSums, RouteWindow, type TargetSums } from './rows/window.js';

/** Fewer requests that were alone in flight say too little of their own work. */
const MIN_ALONE = 5;

/** The counters that other features keep anyway; null with a feature off. */
export interface Counters {
  readonly latency: LatencyFigures | null;
  readonly times: RouteTimeFigures | null;
  readonly scheduling: SchedulingPressure | null;
}

/** What one route had counted when it was last looked at. */
class Before {
  completed = 0;
  errors = 0;
  aborted = 0;
  over: readonly number[] = [];
  blockedMs = 0;
  readonly byStatus = new Map<number, Histogram>();
}
const NO_TIME: RouteTimeTotals = { count: 0, upstreamMs: 0, busyMs: 0, upstreamBusyMs: 0, aloneCount: 0, aloneMs: 0 };

/** What was counted in between two looks. A route's figures are of one moment; the next route is looked at when it is asked for. */
export interface Collected {
  readonly process: ProcessSums;
  /** By name; one that several routes share comes once for each of them. */
  readonly routes: Iterable<readonly [name: string, window: RouteWindow]>;
}

/** Takes what was counted since it last looked. It looks once a minute, and costs requests nothing. */
export class Collector {
  private readonly routes = new Map<Route, Before>();
  private readonly times = new Map<Route, RouteTimeTotals>();
  private readonly calls = new Map<Route, Map<string, TargetSums>>();
  private loop = performance.eventLoopUtilization();
  private throttledMs: number | null = null;

  constructor(private readonly counters: () => Counters) {}

  collect(): Collected {
    const { latency, times, scheduling } = this.counters();
    return { process: this.takeProcess(scheduling), routes: this.takeRoutes(latency, times) };
  }

  private *takeRoutes(
    latency: LatencyFigures | null,
    times: RouteTimeFigures | null,
  ): Generator<readonly [string, RouteWindow]> {
    for (const totals of latency?.totals() ?? []) {
      const window = this.takeRoute(totals);
      if (window === null) continue;
      const { route } = totals;
      if (times !== null) this.takeTime(route, window, times);
      yield [routeName(route), window];
    }
  }

  /** Null when nothing has happened. */
  private takeRoute({ route, byStatus, abortedCount: aborted, blockedMs, over }: RouteTotals): RouteWindow | null {
    let [completed, errors] = [0, 0];
    for (const [status, { count }] of byStatus) {
      completed += count;
      if (status >= 500) errors += count;
    }
    let before = this.routes.get(route);
    if (before === undefined) {
      if (completed + aborted + blockedMs === 0) return null;
      this.routes.set(route, (before = new Before()));
    }
    if (completed === before.completed && aborted === before.aborted && blockedMs === before.blockedMs) return null;
    const window = new RouteWindow();
    for (const [status, histogram] of byStatus) {
      let known = before.byStatus.get(status);
      if (known === undefined) before.byStatus.set(status, (known = new Histogram()));
      known.catchUp(histogram, window.histogram);
    }
    window.completed = window.histogram.count;
    window.sumMs = window.histogram.sumMs;
    window.aborted = aborted - before.aborted;
    window.errors = errors - before.errors;
    window.blockedMs = blockedMs - before.blockedMs;
    for (const [index, { ms, count }] of over.entries()) window.over.set(ms, count - (before.over[index] ?? 0));
    Object.assign(before, { completed, errors, aborted, blockedMs, over: over.map(({ count }) => count) });
    return window;
  }

  private takeTime(route: Route, window: RouteWindow, times: RouteTimeFigures): void {
    this.takeCalls(route, window, times);
    const now = times.totalsOf(route);
    if (now === null) return;
    const before = this.times.get(route) ?? NO_TIME;
    const { count, upstreamMs, busyMs, upstreamBusyMs, aloneCount, aloneMs } = now;
    this.times.set(route, { count, upstreamMs, busyMs, upstreamBusyMs, aloneCount, aloneMs });
    window.timed = count - before.count;
    window.upstreamMs = upstreamMs - before.upstreamMs;
    window.busyMs = busyMs - before.busyMs;
    window.upstreamBusyMs = upstreamBusyMs - before.upstreamBusyMs;
    const alone = aloneCount - before.aloneCount;
    const ownMs = alone >= MIN_ALONE ? (aloneMs - before.aloneMs) / alone : times.ownCpuMsOf(route);
    if (ownMs === null || window.timed === 0) return;
    window.ownOf = window.timed;
    window.ownMs = Math.min(window.busyMs, ownMs * window.timed);
  }

  private takeCalls(route: Route, window: RouteWindow, times: RouteTimeFigures): void {
    for (const { target, calls, wallMs } of times.callsOf(route)) {
      let known = this.calls.get(route);
      if (known === undefined) this.calls.set(route, (known = new Map()));
      const before = known.get(target) ?? { calls: 0, wallMs: 0 };
      if (calls === before.calls) continue;
      known.set(target, { calls, wallMs });
      window.called(target, calls - before.calls, wallMs - before.wallMs);
    }
  }

  private takeProcess(scheduling: SchedulingPressure | null): ProcessSums {
    const process = new ProcessSums();
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
    return process;
  }
}
