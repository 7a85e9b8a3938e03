import type { RequestTime } from '../core/record.js';
import type { RequestState } from '../request/request-state.js';
import type { Route } from '../request/routes.js';
import type { RouteTime, RouteUpstream } from '../core/snapshot.js';

/** Sums over the completed requests of a route since the application started, milliseconds. */
export interface RouteTimeTotals {
  readonly count: number;
  readonly upstreamMs: number;
  /** Milliseconds in which requests waited for a connection of a watched pool, and no call was under way. */
  readonly poolWaitMs: number;
  /** Milliseconds in which the event loop was busy, with any work. */
  readonly busyMs: number;
  /** Milliseconds in which a call was under way and the event loop was busy. */
  readonly upstreamBusyMs: number;
  /** Requests that have ended, aborted ones included, and the CPU time on the main thread of them all; null: nothing is sampled. */
  readonly ended: number;
  readonly ownMs: number | null;
}

/** Calls of one route's requests to one upstream since the application started. */
export interface RouteCalls {
  readonly target: string;
  readonly calls: number;
  readonly wallMs: number;
}

/** The time of routes, by what it was spent on. Not provided with `upstream: false`. */
export abstract class RouteTimeFigures {
  /** The time of routes that share a row. `blockedMs`: proven blocks of their requests. Null before a request has completed. */
  abstract readTime(routes: readonly Route[], blockedMs: number): RouteTime | null;
  abstract readUpstream(routes: readonly Route[], count: number): RouteUpstream[];
  abstract readTotals(route: Route): RouteTimeTotals | null;
  abstract readCalls(route: Route): Iterable<RouteCalls>;
  /** The time of a request that has not ended. */
  abstract splitSoFar(state: RequestState): RequestTime | null;
}
