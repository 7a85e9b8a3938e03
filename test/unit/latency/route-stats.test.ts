import { expect, it } from 'vitest';
import { inOneTurn } from '../../../src/core/turns.js';
import { RouteStats, snapshotRoutes } from '../../../src/latency/route-stats.js';
import { Route } from '../../../src/request/routes.js';

it('the row of requests without a route has the calls of all of them, whatever their method', () => {
  const routes = ['GET', 'POST'].map((method) => new Route(method, '', null, () => {}));
  for (const route of routes) {
    const stats = new RouteStats([], 1_000);
    stats.completed(404, 5);
    stats.headSent(5);
    // Aborted behind its head.
    stats.headSent(5);
    stats.abortedCount = 1;
    route.stats = stats;
  }
  const counts: number[] = [];
  const readUpstream = (_routes: unknown, count: number) => {
    counts.push(count);
    return [];
  };
  const figures = {
    readTime: () => null,
    readUpstream,
    readTotals: () => null,
    readCalls: () => [],
    splitSoFar: () => null,
  };
  const [row] = inOneTurn(snapshotRoutes(routes, new Map(), [], figures));
  expect(row).toMatchObject({ method: '*', route: '', count: 4, aborted: 2 });
  expect(counts).toEqual([4]);
});
