import { attach } from './attachment.js';
import type { RouteHistogram } from './sink.js';

/** What sinks may ask of who measures requests. */
export interface LatencyFigures {
  histograms(): Iterable<RouteHistogram>;
}

/** An application's; there is none with latency off. */
export const LATENCY_FIGURES = attach<LatencyFigures>('application');
