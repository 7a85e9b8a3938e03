import { expect, it } from 'vitest';
import { putOn } from '../../../src/core/stand-in.js';

class Shop {
  who() {
    return 'class';
  }
}
const says = (name: string) => () => name;

it('what stands for a method goes, the last first, and leaves nothing', () => {
  const shop = new Shop();
  const [first, second] = ['first', 'second'].map((name) => putOn(shop, 'who', says(name)));
  second!();
  expect(shop.who()).toBe('first');
  first!();
  expect(shop.who()).toBe('class');
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
