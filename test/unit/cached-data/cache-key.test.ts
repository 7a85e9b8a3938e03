import { Injectable } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { keyMaker } from '../../../src/cached-data/cache-key.js';
import { Cached } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches } from '../../fixtures/cached-data.js';

afterEach(closeCaches);

const keyOf = keyMaker('Catalogue.find', null);
const key = (...args: unknown[]): string => keyOf(args);

describe('a key', () => {
  it('differs where a type or a value does', () => {
    const calls: unknown[][] = [
      [],
      ['1'],
      [1],
      [1n],
      [true],
      ['true'],
      [null],
      ['null'],
      [''],
      ['\u0000"a",'],
      ['a', 'b'],
      ['a,b'],
      ['a', ['b']],
      [['a', 'b']],
      [{ a: 1 }],
      [{ a: '1' }],
      [{ a: undefined }],
      [{}],
      [[]],
      [[undefined]],
      [undefined, 1],
      [NaN],
      [0],
      [-0],
      [{ n: 0 }],
      [{ n: -0 }],
      ['NaN'],
      ['{"a":1}'],
    ];
    expect(new Set(calls.map((args) => key(...args))).size).toBe(calls.length);
  });

  it('is the same for equal calls: order of fields, arguments left out', () => {
    expect(key({ a: 1, b: { c: [2], d: 3 } })).toBe(key({ b: { d: 3, c: [2] }, a: 1 }));
    expect(key('a')).toBe(key('a', undefined));
    expect(key()).toBe(key(undefined));
    expect(key([[1, 2]])).toBe(key([[1, 2]]));
    expect(key(Object.assign(Object.create(null) as object, { a: 1 }))).toBe(key({ a: 1 }));
  });

  const cycle: Record<string, unknown> = {};
  cycle['self'] = [cycle];
  const symbolic = Object.assign([1], { [Symbol('rows')]: 1 });
  /** As postgres.js gives its rows. */
  class Result extends Array<number> {}
  const [named, sparse] = [Object.assign([1], { tenant: 'a' }), Object.assign([], { 2: 'c' })];
  const leftOut =
    'argument 1 of "Catalogue.find" has or holds what JSON leaves out: a field of a symbol, a hidden one, a name or a hole in an array';
  const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown;
  it.each<[string, unknown, string]>([
    ['a function', () => {}, 'argument 1 of "Catalogue.find" is a function'],
    ['a symbol', Symbol('x'), 'argument 1 of "Catalogue.find" is a symbol'],
    ['a cycle', cycle, 'argument 1 of "Catalogue.find" holds itself'],
    ['a date', new Date(), 'argument 1 of "Catalogue.find" is or holds an instance of Date'],
    ['an instance within', { map: new Map() }, 'argument 1 of "Catalogue.find" is or holds an instance of Map'],
    ['a condition', { age: { [Symbol('gt')]: 18 } }, leftOut],
    ['a list with a symbol', symbolic, leftOut],
    ['a list of a class', [Result.of(1)], 'argument 1 of "Catalogue.find" is or holds an instance of Result'],
    ['a list with a field', [named], leftOut],
    ['a list with holes', [sparse], leftOut],
    ['what is too deep', deep, 'argument 1 of "Catalogue.find" is nested more than 100 deep'],
  ])('cannot be made of %s, which says what to do', (_what, value, problem) => {
    expect(() => key(value)).toThrow(
      `PERF_ERR_CACHE_KEY: ${problem}, which makes no key. Say what tells its calls apart: \`@Cached({ key: (…) => string })\`.`,
    );
  });
});

class User {
  constructor(readonly id: string) {}
}

@Injectable()
class Orders {
  loads: string[] = [];

  @Cached({ ttlMs: 60_000, key: (user: User, page = 1) => `${user.id} ${page}` })
  async of(user: User, page?: number) {
    this.loads.push(user.id);
    return `orders of ${user.id}, page ${page}`;
  }

  @Cached({ ttlMs: 60_000 })
  async ofUser(user: User) {
    return user.id;
  }

  @Cached({ ttlMs: 60_000, key: () => 7 as never })
  async wrong() {}

  @Cached({
    ttlMs: 60_000,
    key: () => {
      throw new Error('oops');
    },
  })
  async throwing() {}
}

describe('a cached method', () => {
  it('tells calls apart by its own `key`', async () => {
    const { of, cache } = await cacheOf(Orders);
    await of.of(new User('ada'));
    await of.of(new User('ada'), 1);
    await of.of(new User('bob'));
    expect(of.loads).toEqual(['ada', 'bob']);
    cache.invalidate(Orders, 'of', new User('ada'));
    await of.of(new User('ada'));
    expect(of.loads).toEqual(['ada', 'bob', 'ada']);
  });

  it('is invalidated by its name, with the arguments of a call', async () => {
    const { of, cache } = await cacheOf(Orders);
    await of.of(new User('ada'));
    await of.of(new User('bob'));
    cache.for(Orders).of.invalidate(new User('ada'));
    await of.of(new User('bob'));
    await of.of(new User('ada'));
    expect(of.loads).toEqual(['ada', 'bob', 'ada']);
    cache.for(Orders).of.invalidateAll();
    await of.of(new User('bob'));
    expect(of.loads).toEqual(['ada', 'bob', 'ada', 'bob']);
    expect(() =>
      (cache.for(Orders) as never as Record<string, { invalidateAll(): void }>)['off']!.invalidateAll(),
    ).toThrow('PERF_ERR_OPTION: `PerfCache.invalidateAll()` was called for "Orders.off"');
  });

  const base: object = Object.assign(Object.create(null), { tenant: 7 });
  it.each<[string, object]>([
    ['inherited from an object without a prototype', Object.create(base) as object],
    ['hidden', Object.defineProperty({ id: 1 }, 'tenant', { value: 7 })],
    ['of a getter', { get tenant() { return Math.random(); } }], // prettier-ignore
  ])('refuses arguments with fields %s: the load would get a copy without them', (_what, argument) => {
    const keyOf = keyMaker('Orders.of', null);
    expect(() => keyOf([argument])).toThrow('PERF_ERR_CACHE_KEY: argument 1 of "Orders.of"');
    expect(() => keyOf([{ where: argument }])).toThrow('PERF_ERR_CACHE_KEY');
    expect(keyOf([Object.assign(Object.create(null), { a: 1 })])).toBe(keyOf([{ a: 1 }]));
  });

  it('rejects where there is no key, and does not call', async () => {
    const { of, cache } = await cacheOf(Orders);
    await expect(of.ofUser(new User('ada'))).rejects.toThrow(
      'PERF_ERR_CACHE_KEY: argument 1 of "Orders.ofUser" is or holds an instance of User',
    );
    await expect(of.wrong()).rejects.toThrow(
      'PERF_ERR_CACHE_KEY: the `key` of "Orders.wrong" must return a string, got `7` (number).',
    );
    await expect(of.throwing()).rejects.toThrow('PERF_ERR_CACHE_KEY: the `key` of "Orders.throwing" has thrown: oops');
    expect(() => cache.invalidate(Orders, 'ofUser', new User('ada'))).toThrow('PERF_ERR_CACHE_KEY');
    expect(() => cache.invalidate(Orders, 'off')).toThrow(
      'PERF_ERR_OPTION: `PerfCache.invalidate()` was called for "Orders.off", which is no @Cached() or @Preloaded() method of a provider. ' +
        'There are: Orders.of, Orders.ofUser, Orders.wrong, Orders.throwing.',
    );
    expect(() => cache.invalidate(Orders, undefined as never, 'ada')).toThrow(
      'PERF_ERR_OPTION: `PerfCache.invalidate()` was called for "Orders.undefined"',
    );
  });
});
