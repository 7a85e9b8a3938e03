import { expect, it } from 'vitest';
import { RequestedRate } from '../../../../src/event-loop/profile/requested-rate.js';

it('is the highest of those that are asked for at a time, and the usual one when nobody asks', () => {
  const set: (number | null)[] = [];
  const rate = new RequestedRate((perSecond) => set.push(perSecond));
  const [first, second, third] = [rate.ask(100), rate.ask(50), rate.ask(100)];
  first();
  first();
  third();
  second();
  expect(set).toEqual([100, 100, 100, 100, 100, 50, null]);
});
