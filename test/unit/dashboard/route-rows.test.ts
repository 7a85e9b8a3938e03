import { expect, it } from 'vitest';
import type { RouteSnapshot } from '../../../src/core/snapshot.js';
import { RecentCounts } from '../../../src/dashboard/recent-counts.js';
import { foundRoutes, shownRoute } from '../../../src/dashboard/route-rows.js';

/** A route as a snapshot tells it; several may have the same name and handler, such as versions of one. */
const routeOf = (count: number, ms: number, route = '/users'): RouteSnapshot => ({
  method: 'GET',
  route,
  handler: 'UsersController.list',
  count,
  aborted: 0,
  inFlight: 0,
  errors: 0,
  statuses: { '1xx': 0, '2xx': count, '3xx': 0, '4xx': 0, '5xx': 0 },
  firstByteMs: null,
  durationMs: { mean: ms, p50: ms, p90: ms, p95: ms, p99: ms, max: ms },
  over: [],
  blockedMs: 0,
  time: null,
  upstream: [],
});

it('routes of one name keep their ids and counters, whichever of them takes more time', () => {
  const recent = new RecentCounts();
  const rowsOf = (routes: RouteSnapshot[], filter: string) =>
    foundRoutes(routes, filter).map((route) => shownRoute(route, recent));
  const sample = (at: number, ...routes: RouteSnapshot[]) => {
    recent.next(at, null);
    const rows = rowsOf(routes, '');
    for (const { key, snapshot } of rows) recent.count(key, [snapshot.count, snapshot.errors, 0]);
    return rows.map(({ key, row, snapshot }) => ({ id: row.id, count: row.count, key, of: snapshot }));
  };
  const first = sample(0, routeOf(1_000, 1), routeOf(10, 50), routeOf(1, 1, '/cart'));
  const second = sample(2_000, routeOf(1_001, 1), routeOf(30, 50), routeOf(1, 1, '/cart'));
  const idOf = (rows: typeof first, isIt: (count: number) => boolean): string =>
    rows.find(({ count, of }) => of.route === '/users' && isIt(count))!.id;
  expect(second.map(({ count }) => count)).toEqual([30, 1_001, 1]);
  for (const isIt of [(count: number) => count >= 1_000, (count: number) => count < 1_000])
    expect(idOf(second, isIt)).toBe(idOf(first, isIt));
  const gained = second.map(({ key }) => recent.gained(key, 0));
  expect(gained).toEqual([20, 1, 0]);
  const found = rowsOf([routeOf(1_001, 1), routeOf(30, 50)], 'users');
  expect(found.map(({ row }) => row.id)).toEqual(second.slice(0, 2).map(({ id }) => id));
});
