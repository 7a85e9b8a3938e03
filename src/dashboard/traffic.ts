import { Histogram } from '../core/histogram.js';
import type { Counts } from '../ports/history.js';
import type { CountedRoute } from '../ports/latency-figures.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import { isTraffic } from '../core/work-methods.js';
import type { EarlierCounts } from './earlier-counts.js';
import { pushPoint } from './push-point.js';
import type { TrafficPoint } from './view.js';

/** A longer time without a sample is a gap in the line. */
const GAP_MS = 30_000;

/** The application's traffic between samples, which are taken only while somebody views the page. */
export class Traffic {
  readonly points: TrafficPoint[] = [];
  private lastAt = 0;
  private lastMs = -Infinity;
  /** All requests, and those that failed, as they were at the last sample. */
  private readonly known = new Histogram();
  private knownErrors = 0;

  /** Whether the time since the last sample is unknown. */
  isAfterGap(nowMs: number): boolean {
    return nowMs - this.lastMs > GAP_MS;
  }

  /**
   * Spans are of `nowMs`, which nobody sets; `at` is for the chart. `totals`: null where requests are not measured. `earlier`: what
   * is known of the time before the first sample, and of that before one after a gap.
   */
  *add(
    at: number,
    nowMs: number,
    totals: Iterable<CountedRoute> | null,
    loop: EventLoopSnapshot | null,
    earlier: EarlierCounts | null,
  ): Steps<void> {
    const { lastAt, lastMs } = this;
    const isAfterGap = this.isAfterGap(nowMs);
    this.lastAt = at;
    this.lastMs = nowMs;
    const taken = totals === null ? null : yield* this.take(totals);
    if (!isAfterGap) {
      this.push(at, loop, taken === null ? UNKNOWN : computeFigures(taken, nowMs - lastMs, taken.fresh));
      return;
    }
    if (lastMs !== -Infinity) this.push(lastAt + 1, null, UNKNOWN);
    const { whole = null, spanMs = 0 } = earlier ?? {};
    if (taken !== null && whole !== null) this.push(at, loop, computeFigures(whole, spanMs, null));
  }

  private push(at: number, loop: EventLoopSnapshot | null, figures: Figures): void {
    const { utilization = null, delayMs } = loop ?? {};
    pushPoint(this.points, [at, ...figures, utilization, delayMs?.p99 ?? null]);
  }

  private *take(totals: Iterable<CountedRoute>): Steps<Pick<Counts, 'count' | 'errors'> & { fresh: Histogram }> {
    const [now, fresh] = [new Histogram(), new Histogram()];
    let failed = 0;
    for (const { route, byStatus } of totals) {
      yield;
      // The rows of a resolver's HTTP request count it already.
      if (!isTraffic(route.method)) continue;
      for (const [status, histogram] of byStatus) {
        now.merge(histogram);
        if (status >= 500) failed += histogram.count;
      }
    }
    const errors = failed - this.knownErrors;
    this.knownErrors = failed;
    this.known.catchUp(now, fresh);
    return { fresh, count: fresh.count, errors };
  }
}

/** Requests and errors a second, p50, p95, p99. */
type Figures = readonly [number | null, number | null, number | null, number | null, number | null];
const UNKNOWN: Figures = [null, null, null, null, null];

function computeFigures(
  { count, errors }: Pick<Counts, 'count' | 'errors'>,
  ms: number,
  durations: Histogram | null,
): Figures {
  const perSecond = (requests: number): number => requests / Math.max(0.001, ms / 1_000);
  const [p50 = null, p95 = null, p99 = null] = count === 0 ? [] : (durations?.quantilesMs([0.5, 0.95, 0.99]) ?? []);
  return [perSecond(count), perSecond(errors), p50, p95, p99];
}
