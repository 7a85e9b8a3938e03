import { expect, it } from 'vitest';
import type { RouteSnapshot } from '../../../src/core/snapshot.js';
import { inOneTurn } from '../../../src/core/turns.js';
import { listRoutes, makePodRow } from '../../../src/dashboard/route-rows.js';
import { sumRoutes } from '../../../src/dashboard/traffic.js';
import type { CountedRoute } from '../../../src/ports/latency-figures.js';
import type { RouteTimeFigures } from '../../../src/ports/route-time.js';
import { Route } from '../../../src/request/routes.js';

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

it('routes of one name keep their ids, whichever of them takes more time', () => {
  const sample = (...routes: RouteSnapshot[]) =>
    listRoutes(routes).map(({ id, snapshot: { count, route } }) => ({ id, count, route }));
  const first = sample(routeOf(1_000, 1), routeOf(10, 50), routeOf(1, 1, '/cart'));
  const second = sample(routeOf(1_001, 1), routeOf(30, 50), routeOf(1, 1, '/cart'));
  const idOf = (rows: typeof first, isIt: (count: number) => boolean): string =>
    rows.find(({ count, route }) => route === '/users' && isIt(count))!.id;
  expect(second.map(({ count }) => count)).toEqual([30, 1_001, 1]);
  for (const isIt of [(count: number) => count >= 1_000, (count: number) => count < 1_000])
    expect(idOf(second, isIt)).toBe(idOf(first, isIt));
});

it("a route's own CPU comes from all of its samples, however few, and what is left of the busy loop is waiting", () => {
  const time = { ownCpuMs: null, upstreamMs: 4, poolWaitMs: 2, loopWaitMs: 9, loopShare: 0 };
  const [found] = listRoutes([{ ...routeOf(10, 20), blockedMs: 10, time }]);
  const partsWith = (ownMs?: number) => makePodRow(found!, [], ownMs).time;
  // The snapshot has subtracted 1 ms of proven blocks.
  expect(partsWith(7)).toEqual([7, 4, 2, 3, 4]);
  expect(partsWith(30)).toEqual([30, 4, 2, 0, 0]);
  expect(partsWith()).toEqual([null, 4, 2, 10, 4]);
  const counted = (method: string, pattern: string) =>
    ({ route: new Route(method, pattern, null, () => {}), byStatus: new Map() }) as unknown as CountedRoute;
  const totals = new Map([
    ['/users', { ended: 10, ownMs: 40 }],
    ['/never', { ended: 0, ownMs: 0 }],
    ['/unsampled', { ended: 5, ownMs: null }],
  ]);
  const times = { readTotals: (route: Route) => totals.get(route.pattern) ?? null } as unknown as RouteTimeFigures;
  const routes = ['/users', '/users', '/never', '/unsampled', '/other'].map((path) => counted('GET', path));
  expect(inOneTurn(sumRoutes(routes, times)).ownMs).toEqual(new Map([['GET /users', 4]]));
});
