import type { Histogram } from '../core/histogram.js';
import type { Route } from '../request/routes.js';
import type { RouteHistogram } from '../core/sink.js';

/** The counts of one route since the application started. */
export interface CountedRoute {
  readonly route: Route;
  readonly byStatus: ReadonlyMap<number, Histogram>;
  readonly abortedCount: number;
  readonly over: readonly { readonly ms: number; readonly count: number }[];
  readonly blockedMs: number;
}

/** The counts of all routes; not provided with `latency: false`. */
export abstract class LatencyFigures {
  abstract histograms(): Iterable<RouteHistogram>;
  abstract firstByteHistograms(): Iterable<Omit<RouteHistogram, 'status'>>;
  abstract totals(): Iterable<CountedRoute>;
}
