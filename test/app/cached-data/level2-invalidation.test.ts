import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { startRedis } from '../../../scripts/redis.mjs';
import { Cached } from '../../../src/entries/cache.js';
import { redisCache } from '../../../src/entries/redis.js';
import { answering, cacheOf, closeCaches } from '../../fixtures/cached-data.js';
import { until } from '../../fixtures/until.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await closeCaches();
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

let price = 1;

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 60_000 })
  async product(id: string) {
    return { id, price };
  }
}

const podOf = (url: string, prefix: string) =>
  cacheOf(Catalogue, { level2: answering(redisCache({ connection: url, prefix, deadlineMs: 10_000 })) });

describe('level 2 in Redis', () => {
  it.each<[string, 'invalidate' | 'invalidateAll', ...string[]]>([
    ['key', 'invalidate', '1'],
    ['method', 'invalidateAll'],
  ])('gives nothing of a %s that could not be invalidated, until it has been', async (what, forget, ...args) => {
    price = 1;
    const redis = await startRedis({ own: true });
    cleanups.push(() => redis.stop());
    const admin = new Redis(redis.url);
    cleanups.push(() => admin.disconnect());
    // The beat on which Redis is asked again.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const { of, cache } = await podOf(redis.url, what);
    await of.product('1');
    await until('the value', async () => (await admin.keys(`${what}:*`)).length === 1);
    await admin.config('SET', 'maxmemory', '1');
    price = 2;
    cache[forget](Catalogue, 'product', ...args);
    expect(await of.product('1')).toEqual({ id: '1', price: 2 });
    // Gone from level 1, whatever Redis says: another pod may have told it to.
    await admin.publish(`${what}:invalidated`, JSON.stringify(['another pod', 'Catalogue.product', '1']));
    price = 3;
    await until('heard', async () => (await of.product('1')).price === 3);
    await admin.config('SET', 'maxmemory', '0');
    vi.advanceTimersByTime(10_000);
    await until('invalidated', async () => {
      const values = await Promise.all((await admin.keys(`${what}:*`)).map((key) => admin.get(key)));
      return values.some((value) => /^\d+$/.test(value ?? ''));
    });
  });

  it('reaches other pods while Redis has no memory left', async () => {
    price = 1;
    const redis = await startRedis({ own: true });
    const admin = new Redis(redis.url);
    cleanups.push(() => [redis.stop(), admin.disconnect()]);
    const [one, other] = [await podOf(redis.url, 'full'), await podOf(redis.url, 'full')];
    for (const { of } of [one, other]) await of.product('1');
    await until('the value', async () => (await admin.keys('full:*')).length === 1);
    await admin.config('SET', 'maxmemory', '1');
    price = 2;
    one.cache.invalidate(Catalogue, 'product', '1');
    await until('the other to have it', async () => (await other.of.product('1')).price === 2);
    expect(await admin.keys('full:*')).toEqual([]);
  });

  it('tells keys apart whose text is no Unicode', async () => {
    const prefix = `test-surrogates-${process.pid}`;
    const { of } = await podOf(inject('redisUrl'), prefix);
    const keys = ['\ud800', '\ud801', '\ufffd', '\ud800'.repeat(201), '\ud801'.repeat(201)];
    for (const key of keys) await of.product(key);
    const other = await podOf(inject('redisUrl'), prefix);
    for (const key of keys) expect((await other.of.product(key)).id).toBe(key);
  });

  it('tells a long key from a short one that looks like its hash', async () => {
    const { of } = await podOf(inject('redisUrl'), `test-hash-${process.pid}`);
    const long = 'x'.repeat(201);
    const short = createHash('sha256').update(long).digest('base64url');
    await of.product(long);
    const other = await podOf(inject('redisUrl'), `test-hash-${process.pid}`);
    // What was written is there once this is.
    expect((await other.of.product(long)).id).toBe(long);
    expect((await other.of.product(short)).id).toBe(short);
  });
});
