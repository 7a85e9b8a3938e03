import { Histogram } from '../core/histogram.js';
import type { RouteTotals } from '../core/latency-figures.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import type { EarlierCounts } from './earlier-counts.js';
import { pushBounded } from './ring.js';
import { MAX_POINTS, type TrafficPoint } from './view.js';

/** Nobody looked: the line has a gap there. */
const GAP_MS = 30_000;

/** The application's traffic between samples, which are taken only while somebody looks. */
export class Traffic {
  readonly points: TrafficPoint[] = [];
  private lastAt = -Infinity;
  /** All requests, and those that failed, as they were at the last sample. */
  private readonly known = new Histogram();
  private knownErrors = 0;

  /** Whether the time since the last sample is unknown. */
  isAfterGap(at: number): boolean {
    return at - this.lastAt > GAP_MS;
  }

  /** `earlier`: what is known of the time before the first sample, and of that before one after a gap. */
  *add(
    at: number,
    totals: Iterable<RouteTotals>,
    loop: EventLoopSnapshot | null,
    earlier: EarlierCounts | null,
  ): Steps<void> {
    const { lastAt } = this;
    this.lastAt = at;
    const { fresh, errors } = yield* this.take(totals);
    if (at - lastAt > GAP_MS) {
      if (lastAt !== -Infinity)
        pushBounded(this.points, [lastAt + 1, null, null, null, null, null, null, null], MAX_POINTS);
      const { whole = null, spanMs = 0 } = earlier ?? {};
      if (whole === null || spanMs <= 0) return;
      const perSecond = (count: number): number => count / (spanMs / 1_000);
      const { utilization = null, delayMs } = loop ?? {};
      pushBounded(
        this.points,
        [at, perSecond(whole.count), perSecond(whole.errors), null, null, null, utilization, delayMs?.p99 ?? null],
        MAX_POINTS,
      );
      return;
    }
    const seconds = Math.max(0.001, (at - lastAt) / 1_000);
    const quantiles = fresh.count === 0 ? null : fresh.quantilesMs([0.5, 0.95, 0.99]);
    const [p50, p95, p99] = quantiles ?? [null, null, null];
    const { utilization = null, delayMs } = loop ?? {};
    pushBounded(
      this.points,
      [at, fresh.count / seconds, errors / seconds, p50!, p95!, p99!, utilization, delayMs?.p99 ?? null],
      MAX_POINTS,
    );
  }

  /** What has come since it was called last. */
  private *take(totals: Iterable<RouteTotals>): Steps<{ fresh: Histogram; errors: number }> {
    const [now, fresh] = [new Histogram(), new Histogram()];
    let failed = 0;
    for (const { route, byStatus } of totals) {
      yield;
      // The rows of a resolver's HTTP request count it already.
      if (route.method === 'GRAPHQL') continue;
      for (const [status, histogram] of byStatus) {
        now.merge(histogram);
        if (status >= 500) failed += histogram.count;
      }
    }
    const errors = failed - this.knownErrors;
    this.knownErrors = failed;
    this.known.catchUp(now, fresh);
    return { fresh, errors };
  }
}
