import { expect, it } from 'vitest';
import { keyMaker } from '../../../src/cached-data/cache-key.js';
import { freezeDeep, toText } from '../../../src/cached-data/value.js';

/** As postgres.js gives its rows. */
class Result extends Array<number> {
  count = 42;
}

it('a list that has more to it than its items makes no key, is no JSON, and is not frozen', () => {
  const key = keyMaker('Orders.find', null);
  expect(() => key([Result.of(1)])).toThrow('instance of Result');
  expect(() => key([Object.assign([1], { tenant: 'a' })])).toThrow('PERF_ERR_CACHE_KEY');
  expect(key([[1, 2]])).toBe(key([[1, 2]]));
  const rows = Result.of(1, 2);
  expect([toText(rows), toText([1, [2]])]).toEqual([null, '[1,[2]]']);
  freezeDeep(rows);
  expect(Object.isFrozen(rows)).toBe(false);
});
