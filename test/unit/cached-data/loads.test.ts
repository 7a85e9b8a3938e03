import { AsyncLocalStorage } from 'node:async_hooks';
import { Injectable, Logger } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches, gate } from '../../fixtures/cached-data.js';
import { until } from '../../fixtures/until.js';

afterEach(closeCaches);

const user = new AsyncLocalStorage<string>();
let source: (key: string) => Promise<unknown>;
let asked: string[];

@Injectable()
class Catalogue {
  readonly name = 'its own';

  @Cached({ ttlMs: 60_000 })
  product(id: string) {
    asked.push(id);
    return source(id);
  }

  @Cached({ ttlMs: 60_000 })
  async whose() {
    return [this.name, user.getStore(), new Error('stack').stack];
  }

  @Cached({ ttlMs: 60_000, batch: true })
  async stock(ids: readonly string[]): Promise<unknown> {
    asked.push(ids.join());
    return source(ids.join());
  }

  @Cached({ ttlMs: 60_000 })
  async search({ page }: { page: number }) {
    return `page ${page}`;
  }

  @Cached({ ttlMs: 60_000, batch: true })
  async pages(queries: readonly { page: number }[]) {
    return queries.map(({ page }) => `page ${page}`);
  }

  @Cached({ ttlMs: 60_000, maxEntries: 2 })
  async few(id: string) {
    asked.push(id);
    return id;
  }
}

async function catalogue(options: Parameters<typeof cacheOf>[1] = {}) {
  asked = [];
  source = async (key) => ({ key });
  return cacheOf(Catalogue, options);
}

describe('loads', () => {
  it('are one for ten thousand callers at once (cacheable#88, cacheable#888, nestjs-redisx#1)', async () => {
    const { of, row } = await catalogue();
    const answered = gate<string>();
    source = () => answered.passed;
    const waiting = Array.from({ length: 10_000 }, () => of.product('1'));
    await until('the load', () => asked.length > 0);
    answered.open('answer');
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['answer']));
    expect(asked).toEqual(['1']);
    expect(row('product')).toMatchObject({ misses: 10_000, loads: 1 });
  });

  it('that fail are told to all who wait, and the next caller tries again', async () => {
    const { of, row } = await catalogue();
    source = async () => Promise.reject(new Error('no'));
    const waiting = await Promise.allSettled([of.product('1'), of.product('1')]);
    expect(waiting.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    source = async () => 'yes';
    expect(await of.product('1')).toBe('yes');
    expect(row('product')).toMatchObject({ loads: 2, failed: 1, entries: 1 });
  });

  it('keep what is undefined, null, false or 0 as values', async () => {
    const { of } = await catalogue();
    for (const value of [undefined, null, false, 0, '']) {
      source = async () => value;
      const key = `key ${String(value)}`;
      expect([await of.product(key), await of.product(key)]).toEqual([value, value]);
    }
    expect(asked).toHaveLength(5);
  });

  it('run on their instance, but neither in the context nor in the stack of who asks first', async () => {
    const { of } = await catalogue();
    const handlerOfAda = (): Promise<unknown[]> => of.whose();
    const [name, whose, stack] = await user.run('ada', handlerOfAda);
    expect([name, whose]).toEqual(['its own', undefined]);
    expect(stack).not.toContain('handlerOfAda');
    expect(await user.run('bob', async () => (await of.whose(), user.getStore()))).toBe('bob');
  });

  it('get what the call was given, whatever its caller makes of that meanwhile', async () => {
    const { of } = await catalogue();
    const query = { page: 1 };
    const asked = [of.search(query), of.pages([query])];
    query.page = 2;
    expect(await Promise.all(asked)).toEqual(['page 1', ['page 1']]);
    const proxied = new Proxy({ page: 3 }, {});
    expect(await of.search(proxied)).toBe('page 3');
  });

  it('that began before an invalidation are answered, and not kept (bentocache#71)', async () => {
    const { of, cache } = await catalogue();
    const before = gate<string>();
    source = () => before.passed;
    const waiting = of.product('1');
    await until('the load', () => asked.length > 0);
    cache.invalidate(Catalogue, 'product', '1');
    source = async () => 'after';
    expect(await of.product('1')).toBe('after');
    before.open('before');
    expect(await waiting).toBe('before');
    expect(await of.product('1')).toBe('after');
    for (const forget of [() => cache.invalidate(Catalogue, 'product', '2'), () => cache.invalidateAll(Catalogue)]) {
      const old = gate<string>();
      source = () => old.passed;
      asked.length = 0;
      const asking = of.product('2');
      await until('the load', () => asked.length > 0);
      forget();
      old.open('old');
      expect(await asking).toBe('old');
      source = async () => 'new';
      expect(await of.product('2')).toBe('new');
      cache.invalidateAll(Catalogue, 'product');
    }
  });

  it('of a batch are one call for all that misses in a turn, whoever asks (caffeine#7, caffeine#1536)', async () => {
    const { of, row, cache } = await catalogue();
    source = async (key) => key.split(',').map((id) => (id === 'none' ? undefined : `stock of ${id}`));
    const answers = await Promise.all([of.stock(['a', 'b']), of.stock(['b', 'c', 'b']), of.stock([])]);
    expect(answers).toEqual([['stock of a', 'stock of b'], ['stock of b', 'stock of c', 'stock of b'], []]);
    expect(await of.stock(['none', 'a'])).toEqual([undefined, 'stock of a']);
    expect(await of.stock(['none'])).toEqual([undefined]);
    expect(asked).toEqual(['a,b,c', 'none']);
    cache.invalidate(Catalogue, 'stock', ['a']);
    await of.stock(['a', 'b']);
    expect(asked).toEqual(['a,b,c', 'none', 'a']);
    expect(row('stock')).toMatchObject({ entries: 4, misses: 7, hits: 3 });
  });

  it('of a batch must give one value each, and fail for those items only', async () => {
    const { of } = await catalogue();
    source = async () => ['one'];
    await expect(of.stock(['a', 'b'])).rejects.toThrow(
      'PERF_ERR_DECORATOR: @Cached({ batch: true }) on "Catalogue.stock": it must return an array with a value for each of 2 items, got an array of 1.',
    );
    expect(await of.stock(['a'])).toEqual(['one']);
    await expect((of.stock as (...args: unknown[]) => unknown)('a', 'b')).rejects.toThrow(
      'PERF_ERR_CACHE_KEY: "Catalogue.stock" has `batch: true` and takes one array, got 2 arguments.',
    );
  });
});

describe('room', () => {
  it('is for so many values of a method, the least used leaving first', async () => {
    const { of, row } = await catalogue();
    for (const id of ['a', 'b', 'a', 'c', 'a', 'b']) await of.few(id);
    expect(asked).toEqual(['a', 'b', 'c', 'b']);
    expect(row('few').entries).toBe(2);
  });

  it('is for so many values of all methods together', async () => {
    const { of, cache } = await catalogue({ maxEntries: 3 });
    for (const id of ['a', 'b', 'c', 'd']) await of.product(id);
    await of.few('x');
    expect(cache.stats().reduce((sum, { entries }) => sum + entries, 0)).toBe(3);
    await of.product('d');
    expect(asked).toEqual(['a', 'b', 'c', 'd', 'x']);
  });

  it('is for so many bytes, and what is larger than all of it is answered and not kept', async () => {
    const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    const { of, row } = await catalogue({ maxBytes: 100_000 });
    source = async (key) => ({ text: 'x'.repeat(key === 'huge' ? 60_000 : 20_000) });
    for (let id = 0; id < 20; id++) await of.product(String(id));
    expect(row('product').entries).toBe(2);
    expect(await of.product('huge')).toMatchObject({ text: expect.any(String) });
    await of.product('huge');
    expect(asked.filter((id) => id === 'huge')).toHaveLength(2);
    expect(row('product').entries).toBe(2);
    expect(warn.mock.calls).toEqual([
      [
        'A value of "Catalogue.product" is larger than `maxBytes` of cache(): it is loaded at each call. ' +
          'Raise `maxBytes`, or return less.',
      ],
    ]);
    warn.mockRestore();
  });
});

describe('a value', () => {
  it('is one object for all, and as the method has returned it', async () => {
    const { of } = await catalogue();
    const returned = { rows: [1], tags: [{ name: 'new' }] };
    source = async () => returned;
    expect(await of.product('1')).toBe(returned);
    expect(await of.product('1')).toBe(returned);
    expect(Object.isFrozen(returned.rows)).toBe(false);
  });

  it('that cannot be weighed is answered all the same', async () => {
    const { of } = await catalogue();
    const trap = () => {
      throw new Error('trap');
    };
    const hostile = new Proxy({}, { ownKeys: trap, preventExtensions: trap });
    source = async () => hostile;
    expect(await of.product('1')).toBe(hostile);
    expect(await of.product('1')).toBe(hostile);
  });
});
