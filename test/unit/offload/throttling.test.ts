import { expect, it } from 'vitest';
import { Throttling } from '../../../src/offload/throttling.js';

it('adds up what the kernel counts while calls are running, and looks no more often than it counts', () => {
  let nowMs = 0;
  let countedMs = 1_000;
  let looks = 0;
  const throttledMs = (): number => ((looks += 1), countedMs);
  const cores = () => ({ limit: 0.5, request: null, machine: 2 });
  const throttling = new Throttling({ cores, throttledMs }, () => nowMs);
  const pass = (ms: number, countMs: number): void => {
    nowMs += ms;
    countedMs += countMs;
  };
  expect(throttling.total()).toBe(0);
  throttling.begin();
  pass(500, 200);
  expect(throttling.total()).toBe(200);
  pass(100, 50);
  throttling.end();
  pass(1_000, 700);
  expect(throttling.total()).toBe(250);
  throttling.begin();
  pass(200, 30);
  throttling.end();
  expect(throttling.total()).toBe(280);
  const before = looks;
  for (let i = 0; i < 50; i++) {
    throttling.begin();
    throttling.end();
  }
  expect(looks).toBe(before);
});

it('is 0 where no limit is seen', () => {
  const throttling = new Throttling(null, () => 0);
  throttling.begin();
  throttling.end();
  expect(throttling.total()).toBe(0);
});
