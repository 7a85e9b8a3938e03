import { attach } from './attachment.js';
import type { Histogram } from './histogram.js';
import type { Route } from './route.js';
import type { RouteHistogram } from './sink.js';

/** What has been counted of one route since the application started. */
export interface CountedRoute {
  readonly route: Route;
  readonly byStatus: ReadonlyMap<number, Histogram>;
  readonly abortedCount: number;
  readonly over: readonly { readonly ms: number; readonly count: number }[];
  readonly blockedMs: number;
}

/** What others may ask of who measures requests. */
export interface LatencyFigures {
  histograms(): Iterable<RouteHistogram>;
  totals(): Iterable<CountedRoute>;
}

/** An application's; there is none with latency off. */
export const LATENCY_FIGURES = attach<LatencyFigures>('application');
