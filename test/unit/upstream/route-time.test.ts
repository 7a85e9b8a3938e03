import { expect, it } from 'vitest';
import type { LoopShares } from '../../../src/ports/loop-profile.js';
import { Route } from '../../../src/request/routes.js';
import type { Estimate } from '../../../src/core/snapshot.js';
import { RouteTimes } from '../../../src/upstream/request-time.js';
import { routeTime } from '../../../src/upstream/upstream-snapshot.js';

const withTimes = (times: RouteTimes): Route =>
  Object.assign(new Route('GET', '/reports/:id', null, () => {}), { times });

/** Requests in each of which the loop was busy for 100 ms. */
function timeOf(requests: number, { blockedMs = 0, own = null }: { blockedMs?: number; own?: Estimate | null }) {
  const times = new RouteTimes();
  for (let i = 0; i < requests; i++) {
    times.ended += 1;
    times.add({ upstreamMs: 40, poolWaitMs: 5, idleMs: 0, busyMs: 70, upstreamBusyMs: 30, unplacedCalls: 0 });
  }
  const shares: LoopShares = { ownCpuMs: () => own, shareOfLoop: () => 0.2, sampledMs: () => 0 };
  return routeTime([withTimes(times)], shares, blockedMs)!;
}

it("takes a request's own CPU off the time in which the loop was busy", () => {
  const own: Estimate = { mean: 30, ci: [20, 40], samples: 25 };
  expect(timeOf(5, { own })).toEqual({ ownCpuMs: own, upstreamMs: 40, poolWaitMs: 5, loopWaitMs: 70, loopShare: 0.2 });
  expect(timeOf(5, { own: { ...own, mean: 130 } }).loopWaitMs).toBe(0);
});

it('takes off what is proven to have blocked the loop while own CPU is not known', () => {
  expect(timeOf(10, { blockedMs: 900 })).toMatchObject({ ownCpuMs: null, loopWaitMs: 10 });
});

it('knows neither own CPU nor a share where nothing is sampled', () => {
  const times = new RouteTimes();
  times.add({ upstreamMs: 0, poolWaitMs: 0, idleMs: 0, busyMs: 100, upstreamBusyMs: 0, unplacedCalls: 0 });
  times.ended += 1;
  const time = routeTime([withTimes(times)], null, 0);
  expect(time).toEqual({ ownCpuMs: null, upstreamMs: 0, poolWaitMs: 0, loopWaitMs: 100, loopShare: 0 });
});
