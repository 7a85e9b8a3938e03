import { attach } from './attachment.js';
import type { RouteHistogram } from './sink.js';

/** What sinks may ask of who measures requests. */
export interface LatencyFigures {
  /** Completed requests slower than this are worth a warning, milliseconds. */
  readonly slowMs: number;
  histograms(): Iterable<RouteHistogram>;
}

/** An application's; there is none with latency off. */
export const LATENCY_FIGURES = attach<LatencyFigures>('application');
