import type { Route } from '../request/routes.js';
import type { RouteTime, RouteUpstream } from '../core/snapshot.js';

/** Sums over the completed requests of a route since the application started, milliseconds. */
export interface RouteTimeTotals {
  readonly count: number;
  readonly upstreamMs: number;
  /** The event loop was busy, with whatever. */
  readonly busyMs: number;
  /** Of both: a call was under way, and the event loop was busy. */
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

/** Where the time of routes goes. Not provided with `upstream: false`. */
export abstract class RouteTimeFigures {
  /** Of routes that share a row, whose requests are proven to have blocked the loop so long; null before one has completed. */
  abstract timeOf(routes: readonly Route[], blockedMs: number): RouteTime | null;
  abstract upstreamOf(routes: readonly Route[], count: number): RouteUpstream[];
  abstract totalsOf(route: Route): RouteTimeTotals | null;
  abstract callsOf(route: Route): Iterable<RouteCalls>;
}
