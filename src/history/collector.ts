import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { getOrAdd } from '../core/get-or-add.js';
import { Histogram } from '../core/histogram.js';
import type { CpuAllowance } from '../ports/cpu-allowance.js';
import type { CountedRoute, LatencyFigures } from '../ports/latency-figures.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import type { Route } from '../request/routes.js';
import { MAX_ROUTES, ProcessSums, RouteSums, RouteWindow } from './rows/window.js';

/** The counters that other features keep anyway; null with a feature off. */
export interface Counters {
  readonly latency: LatencyFigures | null;
  readonly times: RouteTimeFigures | null;
  readonly cpu: Pick<CpuAllowance, 'throttledMs'> | null;
}

/** Totals of a route at the last collection. */
class LastTotals {
  sums = new RouteSums();
  ended = 0;
  ownMs = 0;
  readonly byStatus = new Map<number, Histogram>();
}
const NO_SUMS = new RouteSums();

/** Counts between two collections. Routes are read one by one, as the caller iterates: it may yield to the event loop in between. */
export interface Collected {
  readonly process: ProcessSums;
  /** A name that several routes share comes several times. */
  readonly routes: Iterable<readonly [name: string, window: RouteWindow]>;
}

/** Reads the running totals of other features, and returns the difference to the last collection. Requests pay nothing for it. */
export class Collector {
  private readonly last = new Map<Route, LastTotals>();
  private loop = performance.eventLoopUtilization();
  private throttledMs: number | null;

  constructor(private readonly counters: () => Counters) {
    this.throttledMs = this.readThrottledMs();
  }

  collect(): Collected {
    return { process: this.takeProcess(), routes: this.takeRoutes() };
  }

  private *takeRoutes(): Generator<readonly [string, RouteWindow]> {
    const { latency, times } = this.counters();
    const all = [...(latency?.totals() ?? [])];
    // A bucket has names for the first `MAX_ROUTES` routes only: the busiest come first.
    if (all.length > MAX_ROUTES) {
      const counts = new Map(all.map((one) => [one, countRequests(one).completed]));
      all.sort((a, b) => counts.get(b)! - counts.get(a)!);
    }
    for (const totals of all) {
      const window = this.takeRoute(totals, times);
      if (window !== null) yield [totals.route.name, window];
    }
  }

  private takeRoute(totals: CountedRoute, times: RouteTimeFigures | null): RouteWindow | null {
    const { route, byStatus, abortedCount: aborted, blockedMs, over } = totals;
    const { completed, errors } = countRequests(totals);
    const before = this.last.get(route)?.sums ?? NO_SUMS;
    if (completed === before.completed && aborted === before.aborted && blockedMs === before.blockedMs) return null;
    const now = Object.assign(new RouteSums(), { completed, errors, aborted, blockedMs });
    for (const { ms, count } of over) now.over.set(ms, count);
    for (const { target, calls, wallMs } of times?.readCalls(route) ?? []) now.called(target, calls, wallMs);
    const time = times?.readTotals(route) ?? null;
    if (time !== null) {
      const { count: timed, upstreamMs, poolWaitMs, busyMs, upstreamBusyMs } = time;
      Object.assign(now, { timed, upstreamMs, poolWaitMs, busyMs, upstreamBusyMs });
    }
    const window = new RouteWindow();
    window.add(now);
    window.add(before, -1);
    for (const [target, { calls }] of window.targets) if (calls === 0) window.targets.delete(target);
    const last = getOrAdd(this.last, route, () => new LastTotals());
    last.sums = now;
    for (const [status, histogram] of byStatus)
      getOrAdd(last.byStatus, status, () => new Histogram()).catchUp(histogram, window.histogram);
    window.sumMs = window.histogram.sumMs;
    if (time === null || time.ownMs === null) return window;
    // Also with few samples: they are right on average, and sums over many windows have many of them.
    window.sampled = time.ended - last.ended;
    window.ownMs = time.ownMs - last.ownMs;
    [last.ended, last.ownMs] = [time.ended, time.ownMs];
    return window;
  }

  private takeProcess(): ProcessSums {
    const now = performance.eventLoopUtilization();
    const { active: busyMs, idle } = performance.eventLoopUtilization(now, this.loop);
    const throttledMs = this.readThrottledMs();
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    const process = Object.assign(new ProcessSums(), {
      observedMs: busyMs + idle,
      busyMs,
      // Never negative: the kernel's counter starts at 0 when the process moves to another cgroup.
      throttledMs: Math.max(0, (throttledMs ?? 0) - (this.throttledMs ?? throttledMs ?? 0)),
      heapRatio: limit > 0 ? used / limit : 0,
    });
    [this.loop, this.throttledMs] = [now, throttledMs];
    return process;
  }

  private readThrottledMs(): number | null {
    return this.counters().cpu?.throttledMs() ?? null;
  }
}

function countRequests({ byStatus }: CountedRoute): { completed: number; errors: number } {
  let [completed, errors] = [0, 0];
  for (const [status, { count }] of byStatus) {
    completed += count;
    if (status >= 500) errors += count;
  }
  return { completed, errors };
}
