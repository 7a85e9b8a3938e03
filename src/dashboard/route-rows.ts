import { displayJson } from '../core/printable.js';
import type { Durations, RouteSnapshot } from '../core/snapshot.js';
import { isTraffic } from '../core/work-methods.js';
import type { DashboardData, RouteRow } from './view.js';

export const MAX_ROUTES = 500;
const MAX_NAME = 200;

export interface ListedRoute {
  /** Its name among the counters. */
  readonly id: string;
  readonly name: string;
  readonly snapshot: RouteSnapshot;
}

export const cut = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max - 1)}…` : text);
export const cutName = (name: string): string => cut(name, MAX_NAME);
/** The name of a route in the history. */
export const nameRoute = ({ method, route }: { method: string; route: string }): string =>
  `${method} ${route === '' ? '(no route)' : route}`;
/** The name of a route on the page. */
export const showRoute = (route: { method: string; route: string }): string => cutName(nameRoute(route));

/** All routes, the one that took most time first. */
export function listRoutes(routes: readonly RouteSnapshot[]): ListedRoute[] {
  const seen = new Map<string, number>();
  const listed = routes.map((snapshot) => {
    const name = showRoute(snapshot);
    // Two versions of a pattern may share its handler's name as well: their order in the snapshot never changes.
    const id = `${name} ${snapshot.handler ?? ''}`;
    const nth = (seen.get(id) ?? 0) + 1;
    seen.set(id, nth);
    return { id: nth === 1 ? id : `${id} ${nth}`, name, snapshot };
  });
  // Requests in flight have taken time as well.
  const weigh = ({ count, durationMs, inFlight }: RouteSnapshot): number => count * durationMs.mean + inFlight;
  return listed.sort((a, b) => weigh(b.snapshot) - weigh(a.snapshot));
}

type Figures = Pick<RouteSnapshot, 'count' | 'errors' | 'aborted' | 'over' | 'blockedMs'> & { durationMs: Durations };

/** `time`: own CPU, upstream, waiting for a connection, for the loop; null where it is unknown. */
export function makeRow(
  { id, name }: Pick<RouteRow, 'id' | 'name'>,
  { count, errors, aborted, over, blockedMs, durationMs }: Figures,
  overMs: readonly number[],
  time: readonly [number | null, number, number, number] | null,
): RouteRow {
  const { mean, p50, p95, p99, max } = durationMs;
  const row: RouteRow = { id, name, count, ms: [mean, p50, p95, p99, max].map(rounded) as RouteRow['ms'] };
  if (errors > 0) row.errors = errors;
  if (aborted > 0) row.aborted = aborted;
  if (blockedMs > 0) row.blockedMs = rounded(blockedMs);
  if (over.some((one) => one.count > 0)) row.over = overMs.map((ms) => over.find((one) => one.ms === ms)?.count ?? 0);
  if (time === null) return row;
  const [own, upstream, pool, loop] = time;
  const idle = Math.max(0, mean - (own ?? 0) - upstream - pool - loop);
  row.time = [own === null ? null : rounded(own), rounded(upstream), rounded(pool), rounded(loop), rounded(idle)];
  return row;
}

/** The row of a route of this pod. `ownMs`: own CPU of a mean request. */
export function makePodRow(listed: ListedRoute, overMs: readonly number[], ownMs: number | undefined): RouteRow {
  const { snapshot } = listed;
  const { handler, inFlight, time } = snapshot;
  const row = makeRow(listed, snapshot, overMs, time && splitTime(snapshot, time, ownMs));
  if (handler !== null) row.handler = handler.slice(0, 120);
  if (inFlight > 0) row.inFlight = inFlight;
  return row;
}

function splitTime(
  { blockedMs, count }: RouteSnapshot,
  { ownCpuMs, upstreamMs, poolWaitMs, loopWaitMs }: NonNullable<RouteSnapshot['time']>,
  sampledMs: number | undefined,
): readonly [number | null, number, number, number] {
  const own = ownCpuMs?.mean ?? sampledMs ?? null;
  // Without an estimate the snapshot has subtracted proven blocks alone.
  const busyMs = loopWaitMs + (ownCpuMs?.mean ?? blockedMs / Math.max(1, count));
  return [own, upstreamMs, poolWaitMs, own === null ? busyMs : Math.max(0, busyMs - own)];
}

/** Three digits are as exact as the figures are. */
export function rounded(value: number): number {
  if (value === 0 || !Number.isFinite(value)) return value;
  // By hand: through a text it takes as long as all the rest of a row.
  const places = 2 - Math.floor(Math.log10(Math.abs(value)));
  const unit = 10 ** Math.abs(places);
  return places < 0 ? Math.round(value / unit) * unit : Math.round(value * unit) / unit;
}

type Summed = { readonly method: string; readonly count: number; readonly errors: number; readonly inFlight?: number };

/** Rows of jobs, and of a resolver whose HTTP request counts already, are no traffic. */
export function sumTotals(routes: readonly Summed[]): NonNullable<DashboardData['totals']> {
  const totals = { count: 0, errors: 0, inFlight: 0, routes: routes.length };
  for (const { method, count, errors, inFlight = 0 } of routes) {
    if (!isTraffic(method)) continue;
    totals.count += count;
    totals.errors += errors;
    totals.inFlight += inFlight;
  }
  return totals;
}

/** The first rows that there is room for, in bytes of JSON. */
export function takeWithin(rows: readonly RouteRow[], bytes: number): RouteRow[] {
  let left = bytes;
  const end = rows.findIndex((row) => (left -= Buffer.byteLength(displayJson(row)) + 1) < 0);
  return end === -1 ? [...rows] : rows.slice(0, end);
}
