import { expect, it } from 'vitest';
import { Route } from '../../../src/core/route.js';
import type { Estimate } from '../../../src/core/snapshot.js';
import { RouteTimes } from '../../../src/upstream/route-times.js';
import { routeTime } from '../../../src/upstream/upstream-snapshot.js';

const route = new Route('GET', '/reports/:id', null, () => {});

/** Requests of 100 ms of busy time each; so many of them, of `aloneMs`, had the process to themselves. */
function timeOf(requests: number, alone: number, blockedMs = 0, regression: Estimate | null = null, aloneMs = 100) {
  const times = new RouteTimes();
  for (let i = 0; i < requests; i++) {
    times.ended += 1;
    const busyMs = i < alone ? aloneMs : 100;
    times.add({ upstreamMs: 0, busyMs, upstreamBusyMs: 0, alone: i < alone } as Parameters<RouteTimes['add']>[0]);
  }
  return routeTime([route], {
    times: new Map([[route, times]]),
    estimateOf: () => regression,
    blockedMs,
    loopBusyMs: 100 * requests,
  })!;
}
const regression = (mean: number): Estimate => ({ mean, ci: [0.8 * mean, 1.2 * mean], from: 'regression', with: [] });

it('a dozen requests that were alone tell their own work; that of fewer is in the wait', () => {
  expect(timeOf(12, 12)).toMatchObject({ ownCpuMs: { mean: 100, from: 'alone' }, loopWaitMs: 0, loopShare: 1 });
  expect(timeOf(11, 11)).toMatchObject({ ownCpuMs: null, loopWaitMs: 100, loopShare: 0 });
  expect(timeOf(1, 1)).toMatchObject({ ownCpuMs: null, loopWaitMs: 100, loopShare: 0 });
  expect(timeOf(5, 0)).toMatchObject({ ownCpuMs: null, loopWaitMs: 100, loopShare: 0 });
});

it('many that were alone count more than a regression, few count less', () => {
  expect(timeOf(40, 30, 0, regression(40)).ownCpuMs).toMatchObject({ mean: 100, from: 'alone' });
  expect(timeOf(40, 29, 0, regression(40)).ownCpuMs).toMatchObject({ mean: 40, from: 'regression' });
});

it('own work is never more than the loop was busy in the mean of all requests', () => {
  const { ownCpuMs, loopWaitMs } = timeOf(100, 20, 0, null, 300);
  expect(ownCpuMs).toMatchObject({ mean: 140, from: 'alone' });
  expect(timeOf(1_000, 20, 0, null, 600)).toMatchObject({ ownCpuMs: { mean: 110, ci: [110, 600] }, loopWaitMs: 0 });
  expect(loopWaitMs).toBe(0);
});

it('own work is never less than what is proven to have blocked the loop', () => {
  const { ownCpuMs, loopWaitMs } = timeOf(10, 0, 900, regression(11));
  expect(ownCpuMs).toEqual({ mean: 90, ci: [90, 90], from: 'regression', with: [] });
  expect(loopWaitMs).toBe(10);
  expect(timeOf(10, 0, 900)).toMatchObject({ ownCpuMs: null, loopWaitMs: 10 });
});
