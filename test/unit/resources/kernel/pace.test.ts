import { expect, it } from 'vitest';
import { Pace } from '../../../../src/resources/kernel/pace.js';

it('is due at first, then after its time, and when the clock went back', () => {
  const pace = new Pace(1_000);
  expect([5, 6, 1_004, 1_005, 1_006, 2_500, 400, 401].map((nowMs) => pace.due(nowMs))).toEqual([
    true,
    false,
    false,
    true,
    false,
    true,
    true,
    false,
  ]);
});

it('is not due when it was done anyway', () => {
  const pace = new Pace(1_000);
  pace.done(500);
  expect([1_499, 1_500].map((nowMs) => pace.due(nowMs))).toEqual([false, true]);
});

it('is always due without a time', () => {
  const pace = new Pace(0);
  expect([5, 5, 5].map((nowMs) => pace.due(nowMs))).toEqual([true, true, true]);
});
