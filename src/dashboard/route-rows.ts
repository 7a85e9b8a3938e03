import { displayJson } from '../core/printable.js';
import type { PerfSnapshot, RouteSnapshot } from '../core/snapshot.js';
import { isTraffic } from '../core/work-methods.js';
import type { RecentCounts } from './recent-counts.js';
import { nameOf } from './recent-records.js';
import type { DashboardData, OtherRoutes, RouteRow } from './view.js';

/** Routes of one view. */
const MAX_ROUTES = 500;

export interface FoundRoute {
  /** Its name among the counters. */
  readonly key: string;
  readonly snapshot: RouteSnapshot;
}

export interface ShownRoute extends FoundRoute {
  readonly row: RouteRow;
}

/** The routes that took most time, of those that a text is found in. */
export function foundRoutes(routes: readonly RouteSnapshot[], filter: string): FoundRoute[] {
  const wanted = filter.toLowerCase();
  const found = wanted === '' ? routes : routes.filter((route) => textOf(route).includes(wanted));
  const seen = new Map<string, number>();
  return found
    .map((snapshot) => {
      // Two versions of a pattern may share its handler's name as well: told apart by their order, which weights do not change.
      const name = `${nameOf(snapshot)} ${snapshot.handler ?? ''}`;
      const nth = (seen.get(name) ?? 0) + 1;
      seen.set(name, nth);
      return { snapshot, key: nth === 1 ? name : `${name} ${nth}` };
    })
    .sort((a, b) => weightOf(b.snapshot) - weightOf(a.snapshot))
    .slice(0, MAX_ROUTES);
}

export function shownRoute(found: FoundRoute, recent: RecentCounts): ShownRoute {
  const { key, snapshot } = found;
  return { ...found, row: rowOf(snapshot, key, recent.gains(key, 0)) };
}

/** Routes that the rows leave out. */
export function otherRoutes(routes: readonly RouteSnapshot[], shown: readonly ShownRoute[]): OtherRoutes | null {
  const left = new Set(routes);
  for (const { snapshot } of shown) left.delete(snapshot);
  if (left.size === 0) return null;
  const other = { routes: left.size, count: 0, errors: 0 };
  for (const { count, errors } of left) {
    other.count += count;
    other.errors += errors;
  }
  return other;
}

export function totalsOf({ routes }: PerfSnapshot): NonNullable<DashboardData['totals']> {
  const totals = { count: 0, errors: 0, inFlight: 0, routes: routes.length };
  for (const { method, count, errors, inFlight } of routes) {
    // The rows of a resolver's HTTP request count it already.
    if (!isTraffic(method)) continue;
    totals.count += count;
    totals.errors += errors;
    totals.inFlight += inFlight;
  }
  return totals;
}

/** The time of all its requests; of those in flight something is known as well. */
const weightOf = ({ count, durationMs, inFlight }: RouteSnapshot): number => count * durationMs.mean + inFlight;
const textOf = ({ method, route, handler }: RouteSnapshot): string =>
  `${method} ${route} ${handler ?? ''}`.toLowerCase();

function rowOf(route: RouteSnapshot, id: string, recent: number[] | undefined): RouteRow {
  const { mean, p50, p95, p99, max } = route.durationMs;
  const row: RouteRow = {
    id,
    name: nameOf(route),
    count: route.count,
    ms: [rounded(mean), rounded(p50), rounded(p95), rounded(p99), rounded(max)],
  };
  if (route.handler !== null) row.handler = route.handler.slice(0, 120);
  if (route.errors > 0) row.errors = route.errors;
  if (route.aborted > 0) row.aborted = route.aborted;
  if (route.inFlight > 0) row.inFlight = route.inFlight;
  if (route.over.some(({ count }) => count > 0)) row.over = route.over.map(({ count }) => count);
  if (route.blockedMs > 0) row.blockedMs = rounded(route.blockedMs);
  if (recent !== undefined) row.recent = recent;
  if (route.time !== null) {
    const { ownCpuMs, upstreamMs, loopWaitMs } = route.time;
    row.time = [ownCpuMs === null ? null : rounded(ownCpuMs.mean), rounded(upstreamMs), rounded(loopWaitMs)];
  }
  return row;
}

/** Three digits tell as much as the figures are right. */
export function rounded(value: number): number {
  if (value === 0 || !Number.isFinite(value)) return value;
  // By hand: through a text it takes as long as all the rest of a row.
  const places = 2 - Math.floor(Math.log10(Math.abs(value)));
  const unit = 10 ** Math.abs(places);
  return places < 0 ? Math.round(value / unit) * unit : Math.round(value * unit) / unit;
}

/** The first rows that there is room for, and the others together. */
export function withinBytes(rows: readonly RouteRow[], room: number): [RouteRow[], OtherRoutes | null] {
  let left = room;
  const end = rows.findIndex((row) => (left -= Buffer.byteLength(displayJson(row)) + 1) < 0);
  if (end === -1) return [[...rows], null];
  const rest = rows.slice(end);
  const sum = (valueOf: (row: RouteRow) => number): number => rest.reduce((total, row) => total + valueOf(row), 0);
  const other = { routes: rest.length, count: sum(({ count }) => count), errors: sum(({ errors = 0 }) => errors) };
  return [rows.slice(0, end), other];
}
