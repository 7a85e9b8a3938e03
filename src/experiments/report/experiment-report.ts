import type { Comparison } from '../statistics/compare-variants.js';

/** What can be compared by request: `latency` is of successful requests, `blocked` is event-loop time they held. */
export type RequestMetric = 'latency' | 'errors' | 'blocked';
/** What only a switchback can tell: CPU time per completed request, working set. */
export type ResourceMetric = 'cpu' | 'memory';
export type ExperimentMetric = RequestMetric | ResourceMetric;

export interface ReportOptions {
  /** `'GET /users/:id'`, or `'/users/:id'` for all its methods. @default all routes together */
  route?: string;
  /** `'cpu'` and `'memory'` need a switchback. @default 'latency' */
  metric?: ExperimentMetric;
}

export interface ExperimentReport {
  gate: string;
  route: string | null;
  metric: string;
  /** Control is `off`, treatment is `on`; null when nothing can be said. */
  comparison: Comparison | null;
  /** What a careful reader would ask: too few units, sample ratio mismatch, both variants share one loop, … */
  caveats: readonly string[];
  /** The answer in one line. */
  text: string;
}
