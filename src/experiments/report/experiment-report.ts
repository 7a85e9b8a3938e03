import type { Comparison } from '../statistics/compare-variants.js';

/** Metrics of single requests: `latency` of successful ones, `blocked` is the event-loop time that they blocked. */
export type RequestMetric = 'latency' | 'errors' | 'blocked';
/** Metrics of the whole process, for a switchback: CPU time per completed request, resident memory. */
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
  /** Control is `off`, treatment is `on`; null without an answer. */
  comparison: Comparison | null;
  /** Reasons for doubt: too few units, sample ratio mismatch, both variants share one loop, … */
  caveats: readonly string[];
  /** The answer in one line. */
  text: string;
}
