import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Throttling } from '../../../src/offload/throttling.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

let countedMs = 1_000;
let looks = 0;
const cores = () => ({ limit: 0.5, request: null, machine: 2 });
const throttledMs = (): number => ((looks += 1), countedMs);
const pass = (ms: number, countMs: number): void => {
  countedMs += countMs;
  vi.advanceTimersByTime(ms);
};

it('adds up what the kernel counts while calls are running', () => {
  const throttling = new Throttling({ cores, throttledMs });
  expect(throttling.total()).toBe(0);
  throttling.begin();
  pass(500, 200);
  expect(throttling.total()).toBe(200);
  pass(100, 50);
  throttling.end();
  pass(1_000, 0);
  pass(1_000, 700);
  expect(throttling.total()).toBe(250);
  throttling.begin();
  pass(200, 30);
  throttling.end();
  throttling.close();
  expect([throttling.total(), vi.getTimerCount()]).toEqual([280, 0]);
});

it('looks no more than once a second, however often calls come and go', () => {
  const throttling = new Throttling({ cores, throttledMs });
  looks = 0;
  for (let i = 0; i < 1_000; i++) {
    throttling.begin();
    pass(5, 1);
    throttling.end();
    pass(5, 0);
  }
  expect(looks).toBe(1);
  expect(throttling.total()).toBe(1_000);
  looks = 0;
  for (let i = 0; i < 10; i++) {
    throttling.begin();
    throttling.end();
    pass(2_000, 0);
  }
  expect(looks).toBeLessThanOrEqual(20);
  throttling.close();
});

it('is 0 where no limit is seen', () => {
  const throttling = new Throttling(null);
  throttling.begin();
  throttling.end();
  expect(throttling.total()).toBe(0);
  throttling.close();
});
