import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { OffloadCounters } from '../../../src/offload/offload-counters.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

let countedMs = 1_000;
let reads = 0;
let running = 0;
const allowance = {
  cores: () => ({ limit: 0.5, request: null, machine: 2 }),
  throttledMs: (): number => ((reads += 1), countedMs),
};
const pass = (ms: number, countMs: number): void => {
  countedMs += countMs;
  vi.advanceTimersByTime(ms);
};
const begin = (counters: OffloadCounters): void => {
  running += 1;
  counters.began(() => running > 0);
};
const total = (counters: OffloadCounters): number => counters.stats({ threads: 0, running, pending: 0 }).throttledMs;

it('adds up what the kernel counts while calls are running, a second later at the most', () => {
  const counters = new OffloadCounters(allowance);
  begin(counters);
  pass(500, 200);
  begin(counters);
  pass(600, 50);
  expect(total(counters)).toBe(250);
  running = 0;
  pass(1_000, 30);
  pass(5_000, 700);
  expect([total(counters), vi.getTimerCount()]).toEqual([280, 0]);
  begin(counters);
  pass(1_000, 20);
  counters.close();
  running = 0;
  expect([total(counters), vi.getTimerCount()]).toEqual([300, 0]);
});

it('reads once a second, however often calls come and go', () => {
  const counters = new OffloadCounters(allowance);
  reads = 0;
  for (let i = 0; i < 1_000; i++) {
    begin(counters);
    pass(5, 1);
    running -= 1;
    pass(5, 0);
  }
  expect(reads).toBeLessThanOrEqual(20);
  expect(total(counters)).toBeGreaterThan(900);
  counters.close();
});

it('is 0 where no limit is seen', () => {
  const counters = new OffloadCounters(null);
  begin(counters);
  pass(2_000, 0);
  running = 0;
  expect(total(counters)).toBe(0);
  counters.close();
});
