import { expect, it } from 'vitest';
import { Route } from '../../../src/core/route.js';
import { BusyWindows } from '../../../src/upstream/busy-windows.js';
import { RouteTimes } from '../../../src/upstream/route-times.js';

it('a route’s CPU comes from the seconds in which its requests ended', async () => {
  const clock = { now: 0, idle: 0 };
  const route = new Route('GET', '/a', null, () => {});
  const times = new RouteTimes();
  const windows = new BusyWindows({ nowMs: () => clock.now, idleMs: () => clock.idle }, new Map([[route, times]]));
  expect(windows.estimateOf(route)).toBeNull();
  // The boot: nobody's work.
  clock.now += 20_000;
  windows.begin();
  for (let second = 0; second < 300; second++) {
    const ended = second % 7;
    clock.now += 1_000;
    clock.idle += 1_000 - 4 - ended * 12;
    times.ended += ended;
    windows.tick();
  }
  // It is worked out beside other work.
  await expect.poll(() => windows.estimateOf(route)).not.toBeNull();
  const estimate = windows.estimateOf(route);
  expect(estimate).toMatchObject({ from: 'regression', with: [] });
  expect(estimate!.mean).toBeCloseTo(12, 1);
});
