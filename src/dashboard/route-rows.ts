import { entryOf } from '../core/entry-of.js';
import { displayJson } from '../core/printable.js';
import type { PerfSnapshot, RouteSnapshot } from '../core/snapshot.js';
import { isTraffic } from '../core/work-methods.js';
import type { Steps } from '../core/turns.js';
import type { CountedRoute } from '../ports/latency-figures.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import { routeName } from '../request/routes.js';
import { nameInHistory } from './earlier-counts.js';
import type { RecentCounts } from './recent-counts.js';
import { formatRoute } from './recent-records.js';
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
export function findRoutes(routes: readonly RouteSnapshot[], filter: string): FoundRoute[] {
  const wanted = filter.toLowerCase();
  const found = wanted === '' ? routes : routes.filter((route) => searchableText(route).includes(wanted));
  const seen = new Map<string, number>();
  return found
    .map((snapshot) => {
      // Two versions of a pattern may share its handler's name as well: their order, which weights do not change, is part of the key.
      const name = `${formatRoute(snapshot)} ${snapshot.handler ?? ''}`;
      const nth = (seen.get(name) ?? 0) + 1;
      seen.set(name, nth);
      return { snapshot, key: nth === 1 ? name : `${name} ${nth}` };
    })
    .sort((a, b) => weigh(b.snapshot) - weigh(a.snapshot))
    .slice(0, MAX_ROUTES);
}

export function makeRow(found: FoundRoute, recent: RecentCounts, ownMs: ReadonlyMap<string, number>): ShownRoute {
  const { key, snapshot } = found;
  return {
    ...found,
    row: describeRow(snapshot, key, recent.gains(key, 0), ownMs.get(nameInHistory(snapshot)) ?? null),
  };
}

/** Own CPU of a mean request, by the route's name: of all samples so far, since few of them are right in the mean. */
export function* measureOwnMs(routes: Iterable<CountedRoute>, times: RouteTimeFigures): Steps<Map<string, number>> {
  const sums = new Map<string, { ended: number; ms: number }>();
  for (const { route } of routes) {
    yield;
    const { ended = 0, ownMs = null } = times.totalsOf(route) ?? {};
    if (ownMs === null || ended === 0) continue;
    const sum = entryOf(sums, routeName(route), () => ({ ended: 0, ms: 0 }));
    sum.ended += ended;
    sum.ms += ownMs;
  }
  return new Map([...sums].map(([name, { ended, ms }]) => [name, ms / ended]));
}

/** Routes that the rows leave out. */
export function sumOthers({ routes }: PerfSnapshot, shown: readonly ShownRoute[]): OtherRoutes | null {
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

export function sumTotals({ routes }: PerfSnapshot): NonNullable<DashboardData['totals']> {
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
const weigh = ({ count, durationMs, inFlight }: RouteSnapshot): number => count * durationMs.mean + inFlight;
const searchableText = ({ method, route, handler }: RouteSnapshot): string =>
  `${method} ${route} ${handler ?? ''}`.toLowerCase();

function describeRow(
  route: RouteSnapshot,
  id: string,
  recent: number[] | undefined,
  sampledMs: number | null,
): RouteRow {
  const { mean, p50, p95, p99, max } = route.durationMs;
  const row: RouteRow = {
    id,
    name: formatRoute(route),
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
    const { ownCpuMs, upstreamMs, poolWaitMs, loopWaitMs } = route.time;
    const own = ownCpuMs?.mean ?? sampledMs;
    // Without an estimate the snapshot has subtracted proven blocks alone.
    const busyMs = loopWaitMs + (ownCpuMs?.mean ?? route.blockedMs / Math.max(1, route.count));
    const loop = own === null ? busyMs : Math.max(0, busyMs - own);
    row.time = [own === null ? null : rounded(own), rounded(upstreamMs), rounded(poolWaitMs), rounded(loop)];
  }
  return row;
}

/** Three digits are as exact as the figures are. */
export function rounded(value: number): number {
  if (value === 0 || !Number.isFinite(value)) return value;
  // By hand: through a text it takes as long as all the rest of a row.
  const places = 2 - Math.floor(Math.log10(Math.abs(value)));
  const unit = 10 ** Math.abs(places);
  return places < 0 ? Math.round(value / unit) * unit : Math.round(value * unit) / unit;
}

/** The first rows that there is room for, in bytes of JSON, and the others together. */
export function takeWithin<T extends { readonly row: RouteRow }>(rows: readonly T[], room: number) {
  let left = room;
  const end = rows.findIndex(({ row }) => (left -= Buffer.byteLength(displayJson(row)) + 1) < 0);
  if (end === -1) return { taken: [...rows], left: null };
  const other = { routes: rows.length - end, count: 0, errors: 0 };
  for (const { row } of rows.slice(end)) {
    other.count += row.count;
    other.errors += row.errors ?? 0;
  }
  return { taken: rows.slice(0, end), left: other };
}
