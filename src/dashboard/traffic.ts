import { Histogram } from '../core/histogram.js';
import type { RouteTotals } from '../core/latency-figures.js';
import type { EventLoopSnapshot } from '../core/snapshot.js';
import { pushBounded } from './ring.js';
import type { TrafficPoint } from './view.js';

const MAX_POINTS = 120;
/** Nobody looked: the line has a gap there. */
const GAP_MS = 30_000;

/** Upper bounds, milliseconds: a quarter of an octave apart up to two minutes, so that what is between is told within 10 %. */
const BOUNDS_MS = Array.from({ length: 72 }, (_, step) => 2 ** (step / 4 - 1));

interface Sample {
  readonly at: number;
  readonly count: number;
  readonly errors: number;
  readonly atMost: readonly number[];
}

/** The application's traffic between samples, which are taken only while somebody looks. */
export class Traffic {
  readonly points: TrafficPoint[] = [];
  private last: Sample | null = null;

  /** Whether the time since the last sample is unknown. */
  isAfterGap(at: number): boolean {
    return this.last === null || at - this.last.at > GAP_MS;
  }

  add(at: number, totals: Iterable<RouteTotals>, loop: EventLoopSnapshot | null): void {
    const before = this.last;
    const now = sampleOf(at, totals);
    this.last = now;
    if (before === null) return;
    if (at - before.at > GAP_MS) {
      pushBounded(this.points, [before.at + 1, null, null, null, null, null, null, null], MAX_POINTS);
      return;
    }
    const seconds = Math.max(0.001, (at - before.at) / 1_000);
    const atMost = now.atMost.map((count, index) => count - before.atMost[index]!);
    const quantile = (q: number): number | null => quantileOf(atMost, now.count - before.count, q);
    pushBounded(
      this.points,
      [
        at,
        (now.count - before.count) / seconds,
        (now.errors - before.errors) / seconds,
        quantile(0.5),
        quantile(0.95),
        quantile(0.99),
        loop?.utilization ?? null,
        loop?.delayMs.p99 ?? null,
      ],
      MAX_POINTS,
    );
  }
}

function sampleOf(at: number, totals: Iterable<RouteTotals>): Sample {
  const all = new Histogram();
  let errors = 0;
  for (const { route, byStatus } of totals) {
    // The rows of a resolver's HTTP request count it already.
    if (route.method === 'GRAPHQL') continue;
    for (const [status, histogram] of byStatus) {
      all.merge(histogram);
      if (status >= 500) errors += histogram.count;
    }
  }
  return { at, count: all.count, errors, atMost: all.countsAtMost(BOUNDS_MS) };
}

/** Null without requests. Between two bounds as if they were spread evenly. */
function quantileOf(atMost: readonly number[], count: number, q: number): number | null {
  if (count <= 0) return null;
  const rank = q * count;
  const index = atMost.findIndex((seen) => seen >= rank);
  if (index === -1) return BOUNDS_MS.at(-1)!;
  const [lower, below] = index === 0 ? [0, 0] : [BOUNDS_MS[index - 1]!, atMost[index - 1]!];
  const inside = atMost[index]! - below;
  return lower + (BOUNDS_MS[index]! - lower) * (inside === 0 ? 1 : (rank - below) / inside);
}
