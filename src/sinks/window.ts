import { getOrAdd } from '../core/get-or-add.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { PerfSinkHost } from '../core/sink.js';

/** A route's requests in one window; sums in milliseconds. */
export interface RouteDelta {
  readonly method: string;
  /** `''` for all requests that no route matched, whatever their method. */
  readonly route: string;
  /** Completed requests. */
  count: number;
  errors: number;
  totalMs: number;
  /** Cumulative, by {@link BOUNDS_MS}. */
  readonly atMost: number[];
  /** At least one call was under way. */
  upstreamMs: number;
  /** The event loop was busy with others, so that an answer may have lain there already. */
  loopWaitMs: number;
  /** The sum of the calls to each target. */
  readonly wallMs: Map<string, number>;
}

const PER_OCTAVE = 8;
/** 0.25 ms to more than an hour. */
const BOUNDS_MS = Array.from({ length: 24 * PER_OCTAVE }, (_, i) => 2 ** (i / PER_OCTAVE - 2));
/** Between two bounds. */
const MIDDLE = 2 ** (-0.5 / PER_OCTAVE);
/** An upstream matters to a route that spends half of its time there. */
const MIN_SHARE = 0.5;

/** Requests by route since the last call; routes without a completed one are left out. */
export class RouteWindows {
  private before = new Map<string, RouteDelta>();

  next(host: Pick<PerfSinkHost, 'histograms'>, routes: PerfSnapshot['routes']): RouteDelta[] {
    const now = sumRoutes(host, routes);
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

/** The upstream that a route has waited for most, and the share of its time in which it did, 0 to 1; null where none matters. */
export function findWait({
  totalMs,
  upstreamMs,
  loopWaitMs,
  wallMs,
}: RouteDelta): { target: string; share: number } | null {
  const [most] = [...wallMs].toSorted(([, a], [, b]) => b - a);
  if (most === undefined || totalMs <= 0) return null;
  const sumMs = [...wallMs.values()].reduce((sum, ms) => sum + ms, 0);
  // Calls at the same time count once in `upstreamMs`: each target has its part of that.
  const share = Math.min(1, (upstreamMs - Math.max(0, loopWaitMs)) / totalMs) * (most[1] / sumMs);
  return share >= MIN_SHARE ? { target: most[0], share } : null;
}

function sumRoutes(host: Pick<PerfSinkHost, 'histograms'>, routes: PerfSnapshot['routes']): Map<string, RouteDelta> {
  const totals = new Map<string, RouteDelta>();
  const find = (route: string, given: string): RouteDelta => {
    const method = route === '' ? '*' : given;
    const none = { method, route, count: 0, errors: 0, totalMs: 0, upstreamMs: 0, loopWaitMs: 0 };
    return getOrAdd(totals, `${method} ${route}`, () => ({
      ...none,
      atMost: BOUNDS_MS.map(() => 0),
      wallMs: new Map(),
    }));
  };
  for (const histogram of host.histograms()) {
    const total = find(histogram.route, histogram.method);
    total.count += histogram.count;
    total.totalMs += histogram.sumMs;
    if (histogram.status >= 500) total.errors += histogram.count;
    histogram.countsAtMost(BOUNDS_MS).forEach((seen, index) => (total.atMost[index]! += seen));
  }
  // Versions of a handler may have one pattern.
  for (const { method, route, count, aborted, time, upstream } of routes) {
    const total = find(route, method);
    total.upstreamMs += (time?.upstreamMs ?? 0) * (count - aborted);
    total.loopWaitMs += (time?.loopWaitMs ?? 0) * (count - aborted);
    for (const { target, wallMs } of upstream)
      total.wallMs.set(target, (total.wallMs.get(target) ?? 0) + wallMs * count);
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
    upstreamMs: now.upstreamMs - before.upstreamMs,
    loopWaitMs: now.loopWaitMs - before.loopWaitMs,
    wallMs: new Map([...now.wallMs].map(([target, ms]) => [target, ms - (before.wallMs.get(target) ?? 0)])),
  };
}
