import { getOrAdd } from '../core/get-or-add.js';
import type { PerfSinkHost } from '../core/sink.js';

/** A route's completed requests in one window. */
export interface RouteDelta {
  readonly method: string;
  /** `''` for all requests that no route matched, whatever their method. */
  readonly route: string;
  count: number;
  errors: number;
  totalMs: number;
  /** Cumulative, by {@link BOUNDS_MS}. */
  readonly atMost: number[];
}

const PER_OCTAVE = 8;
/** 0.25 ms to more than an hour. */
const BOUNDS_MS = Array.from({ length: 24 * PER_OCTAVE }, (_, i) => 2 ** (i / PER_OCTAVE - 2));
/** Between two bounds. */
const MIDDLE = 2 ** (-0.5 / PER_OCTAVE);

/** Completed requests by route since the last call. */
export class RouteWindows {
  private before = new Map<string, RouteDelta>();

  next(host: Pick<PerfSinkHost, 'histograms'>): RouteDelta[] {
    const now = sumHistograms(host);
    const fresh = [...now].map(([key, total]) => since(this.before.get(key), total)).filter(({ count }) => count > 0);
    this.before = now;
    return fresh;
  }
}

/** Nearest rank, milliseconds; within 5 %. */
export function quantileMs({ count, atMost }: RouteDelta, q: number): number {
  const rank = Math.ceil(q * count);
  const index = atMost.findIndex((seen) => seen >= rank);
  return BOUNDS_MS[index === -1 ? BOUNDS_MS.length - 1 : index]! * MIDDLE;
}

function sumHistograms(host: Pick<PerfSinkHost, 'histograms'>): Map<string, RouteDelta> {
  const totals = new Map<string, RouteDelta>();
  for (const histogram of host.histograms()) {
    const { route, status, count, sumMs } = histogram;
    const method = route === '' ? '*' : histogram.method;
    const none = { method, route, count: 0, errors: 0, totalMs: 0 };
    const total = getOrAdd(totals, `${method} ${route}`, () => ({ ...none, atMost: BOUNDS_MS.map(() => 0) }));
    total.count += count;
    total.totalMs += sumMs;
    if (status >= 500) total.errors += count;
    histogram.countsAtMost(BOUNDS_MS).forEach((seen, index) => (total.atMost[index]! += seen));
  }
  return totals;
}

function since(before: RouteDelta | undefined, now: RouteDelta): RouteDelta {
  if (before === undefined) return now;
  return {
    ...now,
    count: now.count - before.count,
    errors: now.errors - before.errors,
    totalMs: now.totalMs - before.totalMs,
    atMost: now.atMost.map((seen, index) => seen - before.atMost[index]!),
  };
}
