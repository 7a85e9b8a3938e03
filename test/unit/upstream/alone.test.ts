import { expect, it } from 'vitest';
import { RECORD_HOLD } from '../../../src/core/record-hold.js';
import { TIME_SPLIT } from '../../../src/core/request-time.js';
import { Routes } from '../../../src/core/route.js';
import { RequestLifecycle } from '../../../src/http/lifecycle.js';
import { Targets } from '../../../src/upstream/target.js';
import { Upstream } from '../../../src/upstream/upstream.js';

/** A request that nobody else was in flight with, and that is found out later to have waited for blocks so long. */
function requestThatWaited(delayedMs: number) {
  const report = { report() {} } as never;
  let now = 0;
  const routes = new Routes(report);
  const requests = new RequestLifecycle(() => now, routes, report);
  const clock = { nowMs: () => now, idleMs: () => 0 };
  const upstream = new Upstream(new Targets({ target: null, maxTargets: 10 }, report), requests, clock, 10);
  requests.observe(upstream);
  let judge = (): void => {};
  RECORD_HOLD.set(requests, {
    hold: (state, release) => {
      judge = () => {
        state.delayedMs = delayedMs;
        release(state);
      };
      return true;
    },
  });
  const state = requests.begin();
  state.route = routes.create('GET', '/orders', null);
  now = 100;
  requests.end(state, 200, false);
  judge();
  return { alone: TIME_SPLIT.get(state)!.time.alone, times: upstream.routes.get(state.route) };
}

it('a request that waited for a block was not alone, even where no other request was in flight', () => {
  const { alone, times } = requestThatWaited(60);
  expect(alone).toBe(false);
  expect(times).toMatchObject({ count: 1, busyMs: 100, aloneCount: 0, aloneMs: 0 });
});

it('one that waited for none was', () => {
  const { alone, times } = requestThatWaited(0);
  expect(alone).toBe(true);
  expect(times).toMatchObject({ count: 1, aloneCount: 1, aloneMs: 100 });
});
