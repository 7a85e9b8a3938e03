import { Histogram } from '../core/histogram.js';
import type { Route } from '../request/routes.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import type { RouteSnapshot } from '../core/snapshot.js';
import { classStatus } from '../core/status-class.js';
import type { Steps } from '../core/turns.js';

/** Statistics of one route: counters, and one histogram for each status that was answered. */
export class RouteStats {
  abortedCount = 0;
  blockedMs = 0;
  readonly over: number[];
  readonly byStatus = new Map<number, Histogram>();
  /** Until the head was sent; null while none was. */
  firstByte: Histogram | null = null;

  constructor(
    private readonly overMs: readonly number[],
    readonly slowMs: number,
  ) {
    this.over = overMs.map(() => 0);
  }

  completed(status: number, durationMs: number): void {
    let histogram = this.byStatus.get(status);
    if (histogram === undefined) this.byStatus.set(status, (histogram = new Histogram()));
    histogram.record(durationMs);
    for (let i = 0; i < this.overMs.length && durationMs > this.overMs[i]!; i++) this.over[i]! += 1;
  }

  headSent(afterMs: number): void {
    (this.firstByte ??= new Histogram()).record(afterMs);
  }
}

/** The counts of a route; null while it is not measured. */
export const readStats = (route: Route): RouteStats | null => route.stats as RouteStats | null;

/** Rows of routes that have seen traffic. All requests without a route share one row, whatever their method. */
export function* snapshotRoutes(
  routes: readonly Route[],
  inFlight: ReadonlyMap<Route, number>,
  overMs: readonly number[],
  figures: RouteTimeFigures | null,
): Steps<RouteSnapshot[]> {
  const rows: RouteSnapshot[] = [];
  const unmatched: Route[] = [];
  for (const route of routes) {
    if (!hasTraffic(route, inFlight)) continue;
    yield;
    if (route.pattern === '') unmatched.push(route);
    else rows.push(createRow([route], route.method, inFlight, overMs, figures));
  }
  if (unmatched.length > 0) {
    const method = unmatched.length === 1 ? unmatched[0]!.method : '*';
    rows.push(createRow(unmatched, method, inFlight, overMs, figures));
  }
  return rows;
}

function hasTraffic(route: Route, inFlight: ReadonlyMap<Route, number>): boolean {
  const stats = readStats(route);
  return stats !== null && (stats.byStatus.size > 0 || stats.abortedCount > 0 || inFlight.has(route));
}

function createRow(
  routes: readonly Route[],
  method: string,
  inFlight: ReadonlyMap<Route, number>,
  overMs: readonly number[],
  figures: RouteTimeFigures | null,
): RouteSnapshot {
  const all = merged(routes.flatMap((route) => [...readStats(route)!.byStatus.values()]));
  const [p50, p90, p95, p99] = all.quantilesMs([0.5, 0.9, 0.95, 0.99]) as [number, number, number, number];
  const statuses = { '1xx': 0, '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 };
  const over = overMs.map((ms) => ({ ms, count: 0 }));
  let [aborted, errors, flying, blockedMs] = [0, 0, 0, 0];
  for (const route of routes) {
    const stats = readStats(route)!;
    for (const [status, histogram] of stats.byStatus) {
      statuses[`${classStatus(status) / 100}xx` as keyof typeof statuses] += histogram.count;
      if (status >= 500) errors += histogram.count;
    }
    over.forEach((entry, index) => (entry.count += stats.over[index] ?? 0));
    aborted += stats.abortedCount;
    blockedMs += stats.blockedMs;
    flying += inFlight.get(route) ?? 0;
  }
  const [first] = routes;
  const count = all.count + aborted;
  return {
    method,
    route: first!.pattern,
    handler: first!.handler?.name ?? null,
    count,
    aborted,
    inFlight: flying,
    errors,
    statuses,
    durationMs: { mean: all.meanMs, p50, p90, p95, p99, max: all.maxMs },
    firstByteMs: summarizeFirstBytes(routes),
    over,
    blockedMs,
    time: figures?.readTime(routes, blockedMs) ?? null,
    upstream: figures?.readUpstream(routes, count) ?? [],
  };
}

function summarizeFirstBytes(routes: readonly Route[]): RouteSnapshot['firstByteMs'] {
  const heads = routes.flatMap((route) => readStats(route)!.firstByte ?? []);
  if (heads.length === 0) return null;
  const [p50, p95, p99] = merged(heads).quantilesMs([0.5, 0.95, 0.99]) as [number, number, number];
  return { p50, p95, p99 };
}

/** Used again for each row: making one takes longer than filling it. */
const all = new Histogram();

/** All of them in one, until the next call. Most routes answer with one status, and then nothing has to be added up. */
function merged(histograms: readonly Histogram[]): Histogram {
  const [first, ...others] = histograms;
  if (others.length === 0 && first !== undefined) return first;
  all.clear();
  for (const histogram of first === undefined ? [] : [first, ...others]) all.merge(histogram);
  return all;
}
