import type { LoopShares } from '../ports/loop-profile.js';
import type { Route } from '../request/routes.js';
import type { RouteTime, RouteUpstream, UpstreamSnapshot } from '../core/snapshot.js';
import { readTimes, type RouteTimes } from './request-time.js';
import type { Target } from './target.js';

export function upstreamSnapshot(targets: readonly Target[]): UpstreamSnapshot[] {
  return targets.map(({ name, kind, calls, errors, inFlight, durations, routes, pools }) => ({
    target: name,
    kind,
    calls,
    errors,
    inFlight,
    durationMs: durations.figures(),
    pool: pools?.snapshot() ?? null,
    routes: [...routes].flatMap(([{ name: route }, { calls, wallMs }]) => (calls > 0 ? { route, calls, wallMs } : [])),
  }));
}

/** Mean calls and milliseconds per request for each upstream, over `count` requests of these routes. */
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

/**
 * Mean times of a request of these routes; null before one has completed. Without samples (`shares` null), `blockedMs` of proven
 * blocks stands for the own CPU time.
 */
export function routeTime(routes: readonly Route[], shares: LoopShares | null, blockedMs: number): RouteTime | null {
  const known = routes.flatMap((route) => readTimes(route) ?? []);
  const sum = (of: (times: RouteTimes) => number): number => known.reduce((total, times) => total + of(times), 0);
  const count = sum((times) => times.count);
  if (count === 0) return null;
  const ownCpuMs = shares?.ownCpuMs(routes) ?? null;
  const own = ownCpuMs?.mean ?? blockedMs / sum((times) => times.ended);
  return {
    ownCpuMs,
    upstreamMs: sum((times) => times.upstreamMs) / count,
    poolWaitMs: sum((times) => times.poolWaitMs) / count,
    loopWaitMs: Math.max(0, sum((times) => times.busyMs) / count - own),
    loopShare: shares?.shareOfLoop(routes) ?? 0,
  };
}
