import { expect, it } from 'vitest';
import { Call, RequestCalls } from '../../../src/upstream/request-time.js';
import { Target } from '../../../src/upstream/target.js';

/** What one call in place of the most frequent ones would save; each call is what it asks, its start and its end. */
function savedMs(...made: readonly (readonly [what: string, fromMs: number, toMs: number])[]): number {
  const clock = { nowMs: () => 0, idleMs: () => 0 };
  const calls = new RequestCalls(clock, 100);
  const target = new Target('redis cache', 'redis');
  const open = made.map(([, fromMs]) => new Call(clock, target, false, fromMs));
  const steps = made
    .flatMap(([what, fromMs, toMs], i) => [
      { ms: fromMs, step: () => calls.begin(open[i]!, what) },
      { ms: toMs, step: () => calls.end(open[i]!, toMs, false) },
    ])
    .toSorted((a, b) => a.ms - b.ms);
  for (const { step } of steps) step();
  return calls.uses[0]!.mostAlike!.repeatedMs;
}

it('is the time in which one of them was under way, but for the longest', () => {
  expect(savedMs(['get', 0, 10], ['get', 10, 30], ['get', 40, 50])).toBe(20);
  expect(savedMs(['get', 0, 10], ['get', 0, 10], ['get', 10, 20], ['get', 10, 20])).toBe(10);
});

it('is nothing of calls at the same time, nor of one', () => {
  expect(savedMs(['get', 0, 50], ['get', 1, 49], ['get', 2, 50])).toBe(0);
  expect(savedMs(['get', 0, 50])).toBe(0);
});

it('is of the most frequent URL or command only', () => {
  expect(savedMs(['get', 0, 10], ['hget', 10, 200], ['get', 200, 210], ['hget', 300, 400], ['get', 400, 410])).toBe(20);
});
