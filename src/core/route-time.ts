import { attach } from './attachment.js';
import type { Route } from './route.js';
import type { RouteTime, RouteUpstream } from './snapshot.js';

/** Who knows where the time of routes goes. */
export interface RouteTimeFigures {
  /** Of routes that share a row; null before a request has completed. */
  timeOf(routes: readonly Route[]): RouteTime | null;
  upstreamOf(routes: readonly Route[], count: number): RouteUpstream[];
}

/** An application's; there is none with `upstream: false`. */
export const ROUTE_TIME_FIGURES = attach<RouteTimeFigures>('application');
