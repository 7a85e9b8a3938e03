import { attach } from './attachment.js';
import type { Route } from './route.js';
import type { RouteTime, RouteUpstream } from './snapshot.js';

/** Sums over the completed requests of a route since the application started, milliseconds. */
export interface RouteTimeTotals {
  readonly count: number;
  readonly upstreamMs: number;
  /** The event loop was busy, with whatever. */
  readonly busyMs: number;
  /** Of both: a call was under way, and the event loop was busy. */
  readonly upstreamBusyMs: number;
  /** Of those that were alone in flight: their busy time is their own. */
  readonly aloneCount: number;
  readonly aloneMs: number;
}

/** Calls of one route's requests to one upstream since the application started. */
export interface RouteCalls {
  readonly target: string;
  readonly calls: number;
  readonly wallMs: number;
}

/** Who knows where the time of routes goes. */
export interface RouteTimeFigures {
  /** Of routes that share a row, whose requests are proven to have blocked the loop so long; null before one has completed. */
  timeOf(routes: readonly Route[], blockedMs: number): RouteTime | null;
  upstreamOf(routes: readonly Route[], count: number): RouteUpstream[];
  totalsOf(route: Route): RouteTimeTotals | null;
  /** Mean own CPU time of a request of the last minutes, milliseconds; null while it cannot be told. */
  ownCpuMsOf(route: Route): number | null;
  callsOf(route: Route): Iterable<RouteCalls>;
}

/** An application's; there is none with `upstream: false`. */
export const ROUTE_TIME_FIGURES = attach<RouteTimeFigures>('application');
