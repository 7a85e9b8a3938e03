import { expect, it } from 'vitest';
import { Call, RequestCalls } from '../../../src/upstream/request-time.js';
import { Target } from '../../../src/upstream/target.js';

it('times as many waits as calls of one request, counts the others, and ends each that it times', () => {
  let now = 0;
  const clock = { nowMs: () => now, idleMs: () => 0 };
  const calls = new RequestCalls(clock, 4);
  const target = new Target('postgres db', 'sql');
  const begin = (isWait: boolean): Call => {
    const call = new Call(clock, target, isWait, now);
    calls.begin(call, null);
    return call;
  };
  const [waits, made] = [true, false].map((isWait) => Array.from({ length: 10 }, () => begin(isWait)));
  now = 5;
  // In the order in which pools lend, and in another one.
  for (const call of [...waits!, ...made!.toReversed()]) call.end(false);
  const [use] = calls.uses;
  expect(use).toMatchObject({ waitMs: 20, calls: 10, wallMs: 20, maxMs: 5 });
  now = 9;
  const last = begin(false);
  last.end(true);
  expect([calls.upstreamMs, calls.poolWaitMs, use!.calls, use!.errors]).toEqual([5, 0, 11, 0]);
});

it.each([
  [
    'one after the other',
    [
      [0, 10],
      [10, 20],
      [30, 40],
    ],
    3,
  ],
  [
    'at the same time',
    [
      [0, 50],
      [1, 49],
      [2, 50],
    ],
    1,
  ],
  [
    'two at a time',
    [
      [0, 10],
      [0, 10],
      [10, 20],
      [10, 20],
    ],
    2,
  ],
  [
    'two at a time, each when another has ended',
    [
      [0, 10],
      [1, 15],
      [11, 20],
      [16, 25],
    ],
    3,
  ],
  ['nine at once', Array.from({ length: 9 }, () => [0, 10]), 1],
  ['ten at once', Array.from({ length: 10 }, () => [0, 10]), 10],
])('counts as repeats the calls for one URL that are made %s', (_, times, repeats) => {
  const calls = new RequestCalls({ nowMs: () => 0, idleMs: () => 0 }, 100);
  const target = new Target('redis cache', 'redis');
  const steps = times.flatMap(([fromMs, toMs]) => {
    const call = new Call({ nowMs: () => 0, idleMs: () => 0 }, target, false, fromMs!);
    return [
      { ms: fromMs!, order: 1, step: () => calls.begin(call, 'get') },
      { ms: toMs!, order: 0, step: () => calls.end(call, toMs!, false) },
    ];
  });
  for (const { step } of steps.toSorted((a, b) => a.ms - b.ms || a.order - b.order)) step();
  expect(calls.uses[0]!.mostRepeats).toBe(repeats);
});
