import { routeName, type Route } from '../core/route.js';
import type { Estimate, RouteTime, RouteUpstream, UpstreamSnapshot } from '../core/snapshot.js';
import type { RouteTimes } from './route-times.js';
import type { Target } from './target.js';

export function upstreamSnapshot(targets: readonly Target[]): UpstreamSnapshot[] {
  return targets.map(({ name, kind, calls, errors, inFlight, durations, routes }) => ({
    target: name,
    kind,
    calls,
    errors,
    inFlight,
    durationMs: durations.figures(),
    routes: [...routes].map(([route, row]) => ({ route: routeName(route), calls: row.calls, wallMs: row.wallMs })),
  }));
}

/** What `count` requests of these routes have asked of each upstream, a request. */
export function routeUpstreams(targets: readonly Target[], of: readonly Route[], count: number): RouteUpstream[] {
  const rows: RouteUpstream[] = [];
  for (const { name, routes } of targets) {
    let [calls, wallMs] = [0, 0];
    for (const route of of) {
      calls += routes.get(route)?.calls ?? 0;
      wallMs += routes.get(route)?.wallMs ?? 0;
    }
    if (calls > 0) rows.push({ target: name, callsPerRequest: calls / count, wallMs: wallMs / count });
  }
  return rows;
}

/** Fewer requests that were alone say too little. */
const MIN_ALONE = 30;
/** Of the standard normal distribution, two-sided 95 %. */
const Z_95 = 1.959964;

/** What {@link routeTime} asks. */
export interface TimeFigures {
  readonly times: ReadonlyMap<Route, RouteTimes>;
  /** For a route that was too seldom alone. */
  readonly estimateOf: (route: Route) => Estimate | null;
  /** Of the whole process since it measures. */
  readonly loopBusyMs: number;
}

export function routeTime(
  routes: readonly Route[],
  { times: all, estimateOf, loopBusyMs }: TimeFigures,
): RouteTime | null {
  let [count, upstreamMs, busyMs, alone, aloneMs, squares] = [0, 0, 0, 0, 0, 0];
  for (const route of routes) {
    const times = all.get(route);
    if (times === undefined) continue;
    count += times.count;
    upstreamMs += times.upstreamMs;
    busyMs += times.busyMs;
    alone += times.aloneCount;
    aloneMs += times.aloneMs;
    squares += times.aloneSquares;
  }
  if (count === 0) return null;
  const ownCpuMs = meanOf(alone, aloneMs, squares) ?? (routes.length === 1 ? estimateOf(routes[0]!) : null);
  const own = ownCpuMs?.mean ?? 0;
  return {
    ownCpuMs,
    upstreamMs: upstreamMs / count,
    loopWaitMs: Math.max(0, busyMs / count - own),
    loopShare: loopBusyMs > 0 ? Math.min(1, (own * count) / loopBusyMs) : 0,
  };
}

function meanOf(count: number, sum: number, squares: number): Estimate | null {
  if (count < MIN_ALONE) return null;
  const mean = sum / count;
  const variance = Math.max(0, (squares - count * mean * mean) / (count - 1));
  const half = Z_95 * Math.sqrt(variance / count);
  return { mean, ci: [Math.max(0, mean - half), mean + half], from: 'alone', with: [] };
}
