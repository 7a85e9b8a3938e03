import type { Counts, HistoryReader } from '../ports/history.js';
import type { PerfSnapshot, RouteSnapshot } from '../core/snapshot.js';

const SPAN_MS = 5 * 60_000;
/** Routes that failed or were slow most often since the process started. */
const MAX_ROUTES = 100;

/** Requests that ended just before the first sample. */
export interface EarlierCounts {
  readonly spanMs: number;
  /** Null where nothing is kept of all requests. */
  readonly whole: Counts | null;
  /** By route, of those that failed or were slow. */
  readonly routes: ReadonlyMap<RouteSnapshot, Counts>;
}

/** Counts of the last minutes; without a history of all the time since the process started. */
export async function readEarlierCounts(
  { at, routes }: PerfSnapshot,
  history: HistoryReader | null,
  upMs: number,
): Promise<EarlierCounts> {
  const troubles = ({ errors, over }: RouteSnapshot): number => errors + (over[0]?.count ?? 0);
  const suspects = routes
    .filter((route) => troubles(route) > 0)
    .toSorted((a, b) => troubles(b) - troubles(a))
    .slice(0, MAX_ROUTES);
  if (history === null) return { spanMs: upMs, whole: null, routes: new Map(suspects.map((route) => [route, route])) };
  const found = await history.countsSince(at - SPAN_MS, suspects.map(nameInHistory));
  const counts = new Map<RouteSnapshot, Counts>();
  for (const route of suspects) {
    const known = found.routes.get(nameInHistory(route));
    if (known !== undefined) counts.set(route, known);
  }
  return { spanMs: Math.min(SPAN_MS, upMs), whole: found.whole, routes: counts };
}

/** Whole, as the history has it; the row's is cut. */
export const nameInHistory = ({ method, route }: Pick<RouteSnapshot, 'method' | 'route'>): string =>
  `${method} ${route === '' ? '(no route)' : route}`;

/** Requests, and those of them that failed and that were slow. */
export const countTroubles = ({ count, errors, over }: Counts): [number, number, number] => [
  count,
  errors,
  over[0]?.count ?? 0,
];
