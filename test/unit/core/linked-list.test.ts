import { describe, expect, it } from 'vitest';
import { LinkedList, type Linked } from '../../../src/core/linked-list.js';

interface Item extends Linked<Item> {
  readonly name: string;
}
const item = (name: string): Item => ({ name, previous: null, next: null });
const names = (list: LinkedList<Item>): string[] => list.toArray().map(({ name }) => name);

function listOf(...items: Item[]): LinkedList<Item> {
  const list = new LinkedList<Item>();
  for (const one of items) list.add(one);
  return list;
}

describe('A linked list', () => {
  it('keeps the order of arrival', () => {
    const list = listOf(item('a'), item('b'), item('c'));
    expect(names(list)).toEqual(['a', 'b', 'c']);
    expect(list.size).toBe(3);
  });

  it.each([
    ['the first', 0, ['b', 'c']],
    ['one in the middle', 1, ['a', 'c']],
    ['the last', 2, ['a', 'b']],
  ])('lets %s go, and nothing points to it any more', (_, index, left) => {
    const items = [item('a'), item('b'), item('c')];
    const list = listOf(...items);
    expect(list.delete(items[index]!)).toBe(true);
    expect(names(list)).toEqual(left);
    expect(list.size).toBe(2);
    expect(items[index]).toMatchObject({ previous: null, next: null });
  });

  it('says of what it does not hold that it was not deleted', () => {
    const [held, stranger] = [item('a'), item('b')];
    const list = listOf(held);
    expect(list.delete(stranger)).toBe(false);
    expect(list.delete(held)).toBe(true);
    expect(list.delete(held)).toBe(false);
    expect(list.size).toBe(0);
  });

  it('gives out the oldest first, takes in again, and is empty at the end', () => {
    const first = item('a');
    const list = listOf(first, item('b'));
    expect(list.shift()).toBe(first);
    list.add(first);
    expect([list.shift()?.name, list.shift()?.name, list.shift()]).toEqual(['b', 'a', null]);
    list.add(first);
    expect(names(list)).toEqual(['a']);
  });

  it('may be emptied by whoever walks it', () => {
    const list = listOf(item('a'), item('b'), item('c'));
    for (const one of list.toArray()) list.delete(one);
    expect(list.size).toBe(0);
  });
});
