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

/** From so many requests that were alone on they tell more than the regression. */
const MANY_ALONE = 30;
/** Fewer say too little: most of them may be from the start, before code was warm. */
const MIN_ALONE = 12;
/** Two-sided 95 % of Student's distribution with eleven degrees of freedom, for as long as there are few; then of the normal one. */
const [T_95, Z_95] = [2.201, 1.96];

/** What {@link routeTime} asks. */
export interface TimeFigures {
  readonly times: ReadonlyMap<Route, RouteTimes>;
  /** For a route that was too seldom alone. */
  readonly estimateOf: (route: Route) => Estimate | null;
  /** What requests of these routes are proven to have blocked the loop. */
  readonly blockedMs: number;
  /** Of the whole process since it measures. */
  readonly loopBusyMs: number;
}

export function routeTime(
  routes: readonly Route[],
  { times: all, estimateOf, blockedMs, loopBusyMs }: TimeFigures,
): RouteTime | null {
  const known = routes.flatMap((route) => all.get(route) ?? []);
  const sum = (of: (times: RouteTimes) => number): number => known.reduce((total, times) => total + of(times), 0);
  const [ended, count] = [sum((times) => times.ended), sum((times) => times.count)];
  if (count === 0) return null;
  const [upstreamMs, busyMs] = [sum((times) => times.upstreamMs), sum((times) => times.busyMs)];
  const alone = sum((times) => times.aloneCount);
  const few = alone < MANY_ALONE && routes.length === 1 ? estimateOf(routes[0]!) : null;
  const [aloneMs, squares] = [sum((times) => times.aloneMs), sum((times) => times.aloneSquares)];
  const estimate = few ?? meanOf(alone, aloneMs, squares, busyMs / count);
  const provenMs = blockedMs / Math.max(1, ended);
  const ownCpuMs = estimate === null ? null : atLeast(estimate, provenMs);
  const own = ownCpuMs?.mean ?? provenMs;
  return {
    ownCpuMs,
    upstreamMs: upstreamMs / count,
    loopWaitMs: Math.max(0, busyMs / count - own),
    loopShare: ownCpuMs !== null && loopBusyMs > 0 ? Math.min(1, (own * count) / loopBusyMs) : 0,
  };
}

/** `mostMs`: how long the loop was busy in the mean of all requests; those that were alone may be the slow ones of the start. */
function meanOf(count: number, sum: number, squares: number, mostMs: number): Estimate | null {
  if (count < MIN_ALONE) return null;
  const mean = sum / count;
  const variance = Math.max(0, (squares - count * mean * mean) / (count - 1));
  const half = (count < MANY_ALONE ? T_95 : Z_95) * Math.sqrt(variance / count);
  const least = Math.max(0, Math.min(mostMs, mean - half));
  return { mean: Math.min(mostMs, mean), ci: [least, mean + half], from: 'alone', with: [] };
}

/** A route has worked at least for as long as it is proven to have blocked the loop: a regression misses what is rare. */
const atLeast = (estimate: Estimate, ms: number): Estimate => ({
  ...estimate,
  mean: Math.max(ms, estimate.mean),
  ci: [Math.max(ms, estimate.ci[0]), Math.max(ms, estimate.ci[1])],
});
