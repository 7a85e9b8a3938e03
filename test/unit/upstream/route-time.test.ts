import { expect, it } from 'vitest';
import { Route } from '../../../src/core/route.js';
import type { Estimate } from '../../../src/core/snapshot.js';
import { RouteTimes } from '../../../src/upstream/route-times.js';
import { routeTime } from '../../../src/upstream/upstream-snapshot.js';

const route = new Route('GET', '/reports/:id', null, () => {});

/** Requests of 100 ms of busy time each; so many of them had the process to themselves. */
function timeOf(requests: number, alone: number, blockedMs = 0, regression: Estimate | null = null) {
  const times = new RouteTimes();
  for (let i = 0; i < requests; i++) {
    times.ended += 1;
    times.add({ upstreamMs: 0, busyMs: 100, upstreamBusyMs: 0, alone: i < alone } as Parameters<RouteTimes['add']>[0]);
  }
  return routeTime([route], {
    times: new Map([[route, times]]),
    estimateOf: () => regression,
    blockedMs,
    loopBusyMs: 100 * requests,
  })!;
}
const regression = (mean: number): Estimate => ({ mean, ci: [0.8 * mean, 1.2 * mean], from: 'regression', with: [] });

it('five requests that were alone tell their own work, one tells that it has waited for nobody', () => {
  expect(timeOf(5, 5)).toMatchObject({ ownCpuMs: { mean: 100, from: 'alone' }, loopWaitMs: 0, loopShare: 1 });
  expect(timeOf(1, 1)).toMatchObject({ ownCpuMs: null, loopWaitMs: 0, loopShare: 0 });
  expect(timeOf(5, 0)).toMatchObject({ ownCpuMs: null, loopWaitMs: 100, loopShare: 0 });
});

it('many that were alone count more than a regression, few count less', () => {
  expect(timeOf(40, 30, 0, regression(40)).ownCpuMs).toMatchObject({ mean: 100, from: 'alone' });
  expect(timeOf(40, 29, 0, regression(40)).ownCpuMs).toMatchObject({ mean: 40, from: 'regression' });
});

it('own work is never less than what is proven to have blocked the loop', () => {
  const { ownCpuMs, loopWaitMs } = timeOf(10, 0, 900, regression(11));
  expect(ownCpuMs).toEqual({ mean: 90, ci: [90, 90], from: 'regression', with: [] });
  expect(loopWaitMs).toBe(10);
  expect(timeOf(10, 0, 900)).toMatchObject({ ownCpuMs: null, loopWaitMs: 10 });
});
