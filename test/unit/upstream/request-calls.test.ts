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
  expect(use).toMatchObject({ waits: 10, waitMs: 20, calls: 10, wallMs: 20, maxMs: 5 });
  now = 9;
  const last = begin(false);
  last.end(true);
  expect([calls.upstreamMs, calls.poolWaitMs, use!.calls, use!.errors]).toEqual([5, 0, 11, 0]);
});
