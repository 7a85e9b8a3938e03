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

it('of more than a dozen routes the heaviest are told apart, and the others take their part of the time', async () => {
  const clock = { now: 0, idle: 0 };
  const times = new Map(
    Array.from({ length: 20 }, (_, i) => [new Route('GET', `/r${i}`, null, () => {}), new RouteTimes()] as const),
  );
  const windows = new BusyWindows({ nowMs: () => clock.now, idleMs: () => clock.idle }, times);
  const routes = [...times.keys()];
  for (let second = 0; second < 600; second++) {
    let busyMs = 3;
    for (const [i, of] of [...times.values()].entries()) {
      // Each with a beat of its own; the first is the heaviest.
      const ended = (second * (i + 3)) % (i + 7) < 2 ? 2 : 0;
      const ms = 20 - i;
      of.ended += ended;
      of.busyMs += ended * ms;
      busyMs += ended * ms;
    }
    clock.now += 1_000;
    clock.idle += 1_000 - busyMs;
    windows.tick();
  }
  await expect.poll(() => windows.estimateOf(routes[0]!)).not.toBeNull();
  expect(windows.estimateOf(routes[0]!)!.mean).toBeGreaterThan(18);
  expect(windows.estimateOf(routes[0]!)!.mean).toBeLessThan(22);
  expect(windows.estimateOf(routes[19]!)).toBeNull();
});

it('a quarter of an hour of 300 routes takes less than 4 MB', () => {
  const clock = { now: 0, idle: 0 };
  const times = new Map(
    Array.from({ length: 300 }, (_, i) => [new Route('GET', `/r${i}`, null, () => {}), new RouteTimes()] as const),
  );
  const windows = new BusyWindows({ nowMs: () => clock.now, idleMs: () => clock.idle }, times);
  const used = (): number => {
    gc!();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const before = used();
  for (let second = 0; second < 1_000; second++) {
    clock.now += 1_000;
    for (const of of times.values()) of.ended += 3;
    windows.tick();
  }
  expect((used() - before) / 1e6).toBeLessThan(4);
});
