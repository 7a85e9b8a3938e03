import type { LatencyFigures } from '../ports/latency-figures.js';
import { currentRequest, type RequestOwner, type RequestState } from '../request/request-state.js';
import { routeName, type Route } from '../request/routes.js';

/** What calls of one method are to one route. */
export interface RouteShare {
  /** `'GET /products'` */
  readonly route: string;
  /** Share of its time in which such a call is under way, 0 to 1. */
  readonly share: number;
  /** Mean duration of its requests, milliseconds. */
  readonly meanMs: number;
}

/** The calls of one request: they may run at once. */
interface OpenCalls {
  count: number;
  sinceMs: number;
}

/** In which routes' requests one method is called, and for how much of their time. */
export class GhostRoutes {
  private readonly open = new WeakMap<RequestState, OpenCalls>();
  private readonly callMs = new Map<Route, number>();

  constructor(
    private readonly requests: RequestOwner,
    private readonly latency: LatencyFigures | null,
  ) {}

  /** A call begins; to be called at its end. */
  begin(startedMs: number): (endedMs: number) => void {
    const request = currentRequest(this.requests);
    const route = request?.knownRoute ?? null;
    if (request === null || route === null) return () => {};
    const calls = this.open.get(request) ?? { count: 0, sinceMs: 0 };
    this.open.set(request, calls);
    if (calls.count === 0) calls.sinceMs = startedMs;
    calls.count += 1;
    return (endedMs) => {
      calls.count -= 1;
      if (calls.count === 0) this.callMs.set(route, (this.callMs.get(route) ?? 0) + endedMs - calls.sinceMs);
    };
  }

  /** Of the routes whose time is known, those first whose time it takes most of. */
  shares(): RouteShare[] {
    const shares: RouteShare[] = [];
    for (const { route, byStatus } of this.latency?.totals() ?? []) {
      const callMs = this.callMs.get(route);
      let [count, sumMs] = [0, 0];
      for (const histogram of byStatus.values()) [count, sumMs] = [count + histogram.count, sumMs + histogram.sumMs];
      if (callMs === undefined || sumMs === 0) continue;
      shares.push({ route: routeName(route), share: Math.min(1, callMs / sumMs), meanMs: sumMs / count });
    }
    return shares.toSorted((a, b) => b.share - a.share);
  }
}
