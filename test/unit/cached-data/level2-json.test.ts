import { describe, expect, it } from 'vitest';
import { keyMaker } from '../../../src/cached-data/cache-key.js';
import { fromText, toText } from '../../../src/cached-data/value.js';

describe('a value for level 2', () => {
  it.each<[string, unknown]>([
    ['plain data', { rows: [{ id: 1, name: null, tags: [] }], next: '', ok: false }],
    ['zero', [0]],
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
  ])('stays in level 1, since JSON would change it: %s', (_what, value) => {
    expect([toText(value), toText([{ rows: value }])]).toEqual([null, null]);
  });
});

it('a field of an array with holes makes no key', () => {
  const key = keyMaker('Orders.find', null);
  const sparse: unknown[] = [];
  sparse[2] = 'c';
  expect(key([sparse, 1])).not.toBe('');
  expect(() => key([Object.assign(sparse, { tenant: 'a' })])).toThrow('PERF_ERR_CACHE_KEY');
});
