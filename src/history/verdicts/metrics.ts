import type { Verdict } from '../../core/verdict.js';
import type { RouteSums } from '../rows/window.js';

/** Fewer requests make no unit: windows of a quiet route are added until there are enough. */
export const MIN_REQUESTS = 50;

/** The smallest amount of one route's requests that is judged: one window, or several until there are {@link MIN_REQUESTS}. */
export interface Unit {
  readonly at: number;
  readonly sums: RouteSums;
  /** Time of all processes, milliseconds. */
  observedMs: number;
}

/** How one metric is read from units, and judged. */
export interface MetricRule {
  readonly metric: Verdict['metric'];
  /** The metric on the scale on which changes are judged, a logarithm for latency; null where the unit has no value. */
  level(unit: Unit): number | null;
  /** Whether a difference is large enough to report, apart from its significance. */
  matters(before: number, now: number): boolean;
  /** Lower limit of the spread of levels near `before` from `count` requests; `isWeekly`: compared with the same hours of weeks. */
  leastSpread(before: number, count: number, isWeekly: boolean): number;
  /** The change as a verdict reports it. */
  change(before: number, now: number): number;
}

const MIN_RATIO = Math.log(1.2);
const MIN_MS = 10;
const MIN_SHARE = 0.02;
/** Wider without weeks to compare with: mornings and Mondays differ as much as incidents. */
const SPREAD_OF_DAY = 0.12;
const SPREAD_OF_WEEK = 0.05;

const latency: MetricRule = {
  metric: 'latency',
  level: ({ sums }) => (sums.completed === 0 || sums.typicalMs <= 0 ? null : Math.log(sums.typicalMs / sums.completed)),
  matters: (before, now) => Math.abs(now - before) >= MIN_RATIO && Math.abs(Math.exp(now) - Math.exp(before)) >= MIN_MS,
  leastSpread: (_, __, isWeekly) => (isWeekly ? SPREAD_OF_WEEK : SPREAD_OF_DAY),
  change: (before, now) => Math.expm1(now - before),
};

const shareMatters = (before: number, now: number): boolean =>
  Math.abs(now - before) >= MIN_SHARE && (now >= 2 * before || before >= 2 * now);
/** The spread of a share of so many requests, by chance alone. */
const binomial = (share: number, count: number): number => {
  const p = Math.min(0.5, Math.max(share, 1 / count));
  return Math.sqrt((p * (1 - p)) / count);
};
const share = (metric: Verdict['metric'], of: (unit: Unit) => number): MetricRule => ({
  metric,
  level: (unit) => (unit.sums.count === 0 ? null : of(unit)),
  matters: shareMatters,
  leastSpread: binomial,
  change: (before, now) => now - before,
});

/** In this order: a change that shows in several metrics is reported by the first of them. */
export const METRICS: readonly MetricRule[] = [
  share('errors', ({ sums }) => sums.errors / sums.count),
  latency,
  share('over', ({ sums }) => {
    const [shortest] = [...sums.over].toSorted(([a], [b]) => a - b);
    return shortest === undefined || sums.completed === 0 ? 0 : shortest[1] / sums.completed;
  }),
  {
    ...share('blocked', ({ sums, observedMs }) => (observedMs === 0 ? 0 : sums.blockedMs / observedMs)),
    leastSpread: () => MIN_SHARE / 4,
  },
];
