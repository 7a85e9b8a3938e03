import { expect, it } from 'vitest';
import { putOn } from '../../../src/core/stand-in.js';

class Shop {
  who() {
    return 'class';
  }
}
const says = (name: string) => () => name;

it.each([
  ['in the order in which they came', ['first', 'second'], ['second', 'class']],
  ['the last first', ['second', 'first'], ['first', 'class']],
])('what stands for a method goes %s, and leaves nothing', (_order, order, answers) => {
  const shop = new Shop();
  const undo = new Map(['first', 'second'].map((name) => [name, putOn(shop, 'who', says(name))]));
  const seen = order.map((name) => {
    undo.get(name)!();
    return shop.who();
  });
  expect(seen).toEqual(answers);
  expect(Object.keys(Object.getOwnPropertyDescriptors(shop))).toEqual([]);
});

it('what somebody else has put there meanwhile stays', () => {
  const shop = new Shop();
  const undo = putOn(shop, 'who', says('ours'));
  const spy = says('spy');
  shop.who = spy;
  undo();
  expect(shop.who).toBe(spy);
});
