import { describe, expect, it } from 'vitest';
import { fromText, toText } from '../../../src/cached-data/value.js';

describe('a value for level 2', () => {
  it.each<[string, unknown]>([
    ['plain data', { rows: [{ id: 1, name: null, tags: [] }], next: '', ok: false }],
    ['zero', [0, [0]]],
    ['nothing', undefined],
  ])('comes back as it was: %s', (_what, value) => {
    expect(fromText(toText(value)!)).toEqual(value);
  });

  const hidden = <T extends object>(on: T, key: PropertyKey): T => Object.defineProperty(on, key, { value: 9 });
  const sparse: unknown[] = [];
  sparse[2] = 'c';
  it.each<[string, unknown]>([
    ['minus zero', -0],
    ['a symbol', { [Symbol('count')]: 7 }],
    ['a hidden symbol', hidden({ a: 1 }, Symbol('count'))],
    ['a hidden field', hidden({ a: 1 }, 'total')],
    ['a hidden field of an array', hidden([1], 'count')],
    ['a field of an array', Object.assign([1], { count: 9 })],
    ['a symbol of an array', Object.assign([1], { [Symbol('count')]: 9 })],
    ['a hole in an array', sparse],
    ['a list of a class', class Rows extends Array<number> {}.of(1, 2)],
  ])('stays in level 1, since JSON would change it: %s', (_what, value) => {
    expect([toText(value), toText([{ rows: value }])]).toEqual([null, null]);
  });
});
