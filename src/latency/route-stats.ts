import { Histogram } from '../core/histogram.js';
import { attach } from '../core/attachment.js';

/** Statistics of one route: counters, and one histogram for each status that was answered. */
export class RouteStats {
  abortedCount = 0;
  blockedMs = 0;
  readonly over: number[];
  readonly byStatus = new Map<number, Histogram>();
  private lastStatus = 0;
  private last: Histogram | null = null;

  constructor(
    private readonly overMs: readonly number[],
    /** Longer is slow, milliseconds. */
    readonly slowMs: number,
  ) {
    this.over = overMs.map(() => 0);
  }

  completed(status: number, durationMs: number): void {
    const histogram = status === this.lastStatus ? this.last! : this.histogramOf(status);
    histogram.record(durationMs);
    for (let i = 0; i < this.overMs.length && durationMs > this.overMs[i]!; i++) this.over[i]! += 1;
  }

  aborted(): void {
    this.abortedCount += 1;
  }

  blocked(ms: number): void {
    this.blockedMs += ms;
  }

  histogramOf(status: number): Histogram {
    let histogram = this.byStatus.get(status);
    if (histogram === undefined) {
      histogram = new Histogram();
      this.byStatus.set(status, histogram);
    }
    this.lastStatus = status;
    this.last = histogram;
    return histogram;
  }
}

/** Of a route; null when it is not measured. */
export const ROUTE_STATS = attach<RouteStats>('route');
