import { getOrAdd } from '../core/get-or-add.js';
import { Histogram } from '../core/histogram.js';
import { pushBounded } from '../core/push-bounded.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import { isTraffic } from '../core/work-methods.js';
import type { CountedRoute } from '../ports/latency-figures.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import { rounded } from './route-rows.js';
import { MAX_POINTS, type Point } from './view.js';

/** A longer time without a sample is a gap in the line. */
const GAP_MS = 30_000;

/** Adds a chart's point. Later ones, from before the wall clock was set back, go: a chart runs forwards. */
export function addPoint<T extends readonly [at: number, ...unknown[]]>(points: T[], point: T): void {
  while (points.length > 0 && points.at(-1)![0] > point[0]) points.pop();
  pushBounded(points, point, MAX_POINTS);
}

interface Sums {
  readonly requests: Histogram;
  readonly errors: number;
  /** Own CPU of a mean request, by the route's name: of all samples so far, since few of them are right in the mean. */
  readonly ownMs: ReadonlyMap<string, number>;
}

/** Sums over all routes since the application started. */
export function* sumRoutes(counted: Iterable<CountedRoute>, times: RouteTimeFigures | null): Steps<Sums> {
  const [requests, own] = [new Histogram(), new Map<string, { ended: number; ms: number }>()];
  let errors = 0;
  for (const { route, byStatus } of counted) {
    yield;
    const { ended = 0, ownMs = null } = times?.readTotals(route) ?? {};
    if (ownMs !== null && ended > 0) {
      const sum = getOrAdd(own, route.name, () => ({ ended: 0, ms: 0 }));
      sum.ended += ended;
      sum.ms += ownMs;
    }
    // The rows of a resolver's HTTP request count it already.
    if (!isTraffic(route.method)) continue;
    for (const [status, histogram] of byStatus) {
      requests.merge(histogram);
      if (status >= 500) errors += histogram.count;
    }
  }
  return { requests, errors, ownMs: new Map([...own].map(([name, { ended, ms }]) => [name, ms / ended])) };
}

/** The application's traffic between samples, which are taken only while somebody views the page. */
export class Traffic {
  readonly points: Point[] = [];
  private lastMs = -Infinity;
  /** All requests, and those that failed, as they were at the last sample. */
  private readonly known = new Histogram();
  private knownErrors = 0;

  /** Spans are of `nowMs`, which nobody sets. `sums`: null where requests are not measured. */
  add({ at, eventLoop }: Pick<PerfSnapshot, 'at' | 'eventLoop'>, nowMs: number, sums: Sums | null): void {
    const fresh = new Histogram();
    if (sums !== null) this.known.catchUp(sums.requests, fresh);
    const errors = (sums?.errors ?? 0) - this.knownErrors;
    this.knownErrors += errors;
    const spanMs = nowMs - this.lastMs;
    this.lastMs = nowMs;
    // The time of a gap is not that of a point.
    if (spanMs > GAP_MS) return addPoint(this.points, [at, null, null, null, null, null, null, null]);
    const rate = (count: number): number | null =>
      sums === null ? null : rounded(count / Math.max(0.001, spanMs / 1_000));
    const [p50 = null, p95 = null, p99 = null] =
      fresh.count === 0 ? [] : fresh.quantilesMs([0.5, 0.95, 0.99]).map(rounded);
    const loop = [eventLoop?.utilization ?? null, eventLoop?.delayMs.p99 ?? null] as const;
    addPoint(this.points, [at, rate(fresh.count), rate(errors), p50, p95, p99, ...loop]);
  }
}
