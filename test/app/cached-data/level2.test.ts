import { runInThisContext } from 'node:vm';
import { Injectable, Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { freePort, startRedis } from '../../../scripts/redis.mjs';
import { cache, Cached, PerfCache, Preloaded } from '../../../src/entries/cache.js';
import { redisCache, type RedisCacheConnection } from '../../../src/entries/redis.js';
import { startApp, type TestApp } from '../../fixtures/app.js';
import { ownCluster } from '../../fixtures/redis.js';
import { answering, gate } from '../../fixtures/cached-data.js';
import { until } from '../../fixtures/until.js';

/** Of all pods. */
const source = { price: 1, loads: [] as string[], held: Promise.resolve() };

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 60_000, staleMs: 60_000 })
  async product(id: string) {
    source.loads.push(`product ${id}`);
    const { price } = source;
    await source.held;
    return id === 'none' ? undefined : { id, price };
  }

  @Cached({ ttlMs: 60_000, level2: false })
  async secret(id: string) {
    source.loads.push(`secret ${id}`);
    return id;
  }

  @Cached({ ttlMs: 60_000 })
  async since() {
    source.loads.push('since');
    return new Date(0);
  }

  @Cached({ ttlMs: 60_000, batch: true })
  async stock(ids: readonly string[]) {
    source.loads.push(`stock ${ids.join()}`);
    return ids.map((id) => id.length);
  }

  @Preloaded({ everyMs: 600_000 })
  async brands() {
    source.loads.push('brands');
    return [source.price];
  }
}

/** As a minifier writes it: in the next build another class may have the name. */
const c = (
  runInThisContext('(loads)=>class c{async find(id){loads.push("find "+id);return id}}') as (loads: string[]) => unknown
)(source.loads) as new () => { find(id: string): Promise<string> };
Cached({ ttlMs: 60_000 })(c.prototype, 'find', Object.getOwnPropertyDescriptor(c.prototype, 'find')!);
/** A name of it is made by a minifier, too. */
class Port {}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  source.loads.length = 0;
  source.price = 1;
  source.held = Promise.resolve();
});

let prefixes = 0;
const newPrefix = (): string => `test-${process.pid}-${(prefixes += 1)}`;

interface Pod extends TestApp {
  catalogue: Catalogue;
  cache: PerfCache;
}

/** A machine that is busy with other suites is not to be taken for a slow Redis. */
const PATIENT_MS = 10_000;

async function pod(
  prefix: string,
  connection: RedisCacheConnection = inject('redisUrl'),
  { deadlineMs = PATIENT_MS, waits = true } = {},
): Promise<Pod> {
  const given = redisCache({ connection, prefix, deadlineMs });
  const level2 = waits ? answering(given) : given;
  const app = await startApp('fastify', {
    perf: { extensions: [cache({ level2 })] },
    metadata: { providers: [Catalogue, c, { provide: Port, useClass: c }] },
  });
  closing.push(() => app.close());
  return { ...app, catalogue: app.app.get(Catalogue), cache: app.app.get(PerfCache) };
}

describe('level 2 in Redis', () => {
  it('lets one load serve all pods, what is undefined and what comes in batches included', async () => {
    const prefix = newPrefix();
    const [first, second] = [await pod(prefix), await pod(prefix)];
    source.loads.length = 0;
    expect(await first.catalogue.product('1')).toEqual({ id: '1', price: 1 });
    expect(await first.catalogue.product('none')).toBeUndefined();
    expect(await first.catalogue.stock(['a', 'bb'])).toEqual([1, 2]);
    const redis = new Redis(inject('redisUrl'));
    closing.push(() => redis.disconnect());
    await until('values in Redis', async () => (await redis.keys(`${prefix}:*`)).length === 4);
    expect(await second.catalogue.product('1')).toEqual({ id: '1', price: 1 });
    expect(await second.catalogue.product('none')).toBeUndefined();
    expect(await second.catalogue.stock(['bb', 'ccc', 'a'])).toEqual([2, 3, 1]);
    expect(source.loads).toEqual(['product 1', 'product none', 'stock a,bb', 'stock ccc']);
  });

  it('is not given what asks for level 1, or what JSON would change', async () => {
    const prefix = newPrefix();
    const [first, second] = [await pod(prefix), await pod(prefix)];
    for (const { catalogue } of [first, second]) {
      await catalogue.secret('x');
      expect(await catalogue.since()).toEqual(new Date(0));
      await catalogue.since();
    }
    expect(source.loads.filter((load) => load !== 'brands')).toEqual(['secret x', 'since', 'secret x', 'since']);
  });

  it('is not given what a class keeps that a minifier has named, and the log says so', async () => {
    const warned = vi.spyOn(Logger.prototype, 'warn');
    closing.push(() => warned.mockRestore());
    const prefix = newPrefix();
    const [first, second] = [await pod(prefix), await pod(prefix)];
    for (const { app } of [first, second]) {
      for (const token of [c, Port]) expect(await app.get<InstanceType<typeof c>>(token).find('1')).toBe('1');
    }
    expect(source.loads.filter((load) => load === 'find 1')).toHaveLength(4);
    const said = /^"c(\(Port\))?\.find" stays in level 1: its class has a name of at most three characters/;
    expect(warned.mock.calls.filter(([message]) => said.test(String(message)))).toHaveLength(4);
  });

  it('tells all pods of an invalidation', async () => {
    const prefix = newPrefix();
    const [first, second] = [await pod(prefix), await pod(prefix)];
    for (const { catalogue } of [first, second]) await catalogue.product('1');
    await second.catalogue.secret('x');
    source.price = 2;
    first.cache.invalidate(Catalogue, 'product', '1');
    first.cache.invalidate(Catalogue, 'secret', 'x');
    first.cache.invalidate(Catalogue, 'brands');
    expect(await first.catalogue.product('1')).toMatchObject({ price: 2 });
    await until('the other pod has heard', async () => (await second.catalogue.product('1'))?.price === 2);
    await until('preloaded values too', async () => (await second.catalogue.brands())[0] === 2);
    await until('level 1 alone too', async () => {
      await second.catalogue.secret('x');
      return source.loads.filter((load) => load === 'secret x').length === 2;
    });
    source.price = 3;
    second.cache.invalidateAll(Catalogue);
    await until('the first pod has heard', async () => (await first.catalogue.product('1'))?.price === 3);
  });

  it('never holds what began to load before an invalidation, of one key or of a whole method', async () => {
    const prefix = newPrefix();
    const [first, second, third] = [await pod(prefix), await pod(prefix), await pod(prefix)];
    for (const forget of [
      () => second.cache.invalidate(Catalogue, 'product', '1'),
      () => second.cache.invalidateAll(Catalogue, 'product'),
    ]) {
      const slow = gate();
      source.held = slow.passed;
      source.loads.length = 0;
      const waiting = first.catalogue.product('1');
      await until('the load', () => source.loads.includes('product 1'));
      const old = source.price;
      source.price += 1;
      forget();
      source.held = Promise.resolve();
      slow.open();
      expect(await waiting).toMatchObject({ price: old });
      // Whatever the first pod has written or not, by now.
      await first.catalogue.stock([String(source.price)]);
      expect(await third.catalogue.product('1')).toMatchObject({ price: source.price });
      second.cache.invalidateAll(Catalogue);
      await until('all have forgotten it', async () => {
        const prices = await Promise.all([first, third].map(async ({ catalogue }) => catalogue.product('1')));
        return prices.every((product) => product?.price === source.price);
      });
      third.cache.invalidateAll(Catalogue);
      // The first has to load again in the next round.
      source.price += 1;
      await until('the first has heard', async () => (await first.catalogue.product('1'))?.price === source.price);
      first.cache.invalidateAll(Catalogue);
    }
  });

  it('is done without while Redis is dead, and forgets level 1 when it is back', async () => {
    const prefix = newPrefix();
    const redis = await startRedis({ own: true });
    closing.push(() => redis.stop());
    const [first, second] = [await pod(prefix, { port: redis.port }), await pod(prefix, { port: redis.port })];
    await first.catalogue.product('1');
    await second.catalogue.product('1');
    await redis.stop({ keepData: true });
    source.price = 2;
    // Heard by nobody else now.
    first.cache.invalidate(Catalogue, 'product', '1');
    for (let i = 0; i < 20; i++) expect(await first.catalogue.product(`dead ${i}`)).toMatchObject({ price: 2 });
    expect(await second.catalogue.product('1')).toMatchObject({ price: 1 });
    const again = await startRedis({ own: true, port: redis.port });
    closing.push(() => again.stop());
    await until('level 1 is empty', async () => (await second.catalogue.product('1'))?.price === 2);
  });

  it('is waited for no longer than its deadline when Redis hangs', async () => {
    const redis = await startRedis({ own: true });
    closing.push(() => redis.stop());
    const { catalogue } = await pod(newPrefix(), { port: redis.port }, { deadlineMs: 50 });
    await catalogue.product('1');
    redis.child!.kill('SIGSTOP');
    const startedMs = performance.now();
    for (let i = 0; i < 5; i++) await catalogue.product(`stalled ${i}`);
    expect(performance.now() - startedMs).toBeLessThan(2_500);
    redis.child!.kill('SIGCONT');
  });

  it('starts without a Redis, and uses one that comes later', async () => {
    const port = await freePort();
    const { catalogue } = await pod(newPrefix(), { port }, { waits: false });
    expect(await catalogue.product('1')).toEqual({ id: '1', price: 1 });
    expect(await catalogue.product('1')).toEqual({ id: '1', price: 1 });
    expect(source.loads).toEqual(['brands', 'product 1']);
    const late = await startRedis({ own: true, port });
    closing.push(() => late.stop());
    const redis = new Redis(late.url);
    closing.push(() => redis.disconnect());
    let id = 0;
    await until('a value in Redis', async () => {
      await catalogue.product(`later ${(id += 1)}`);
      return (await redis.keys('*')).length > 0;
    });
  });

  it('is shared in a Cluster, each method in a slot of its own', async () => {
    const { cluster, keys } = await ownCluster();
    const [first, second] = [await pod('shop', cluster), await pod('shop', cluster)];
    await first.catalogue.product('1');
    await first.catalogue.stock(['a', 'bb']);
    await until('values in Redis', async () => (await keys('shop:*')).length === 3);
    await second.catalogue.product('1');
    await second.catalogue.stock(['a', 'bb']);
    expect(source.loads).toEqual(['brands', 'brands', 'product 1', 'stock a,bb']);
    source.price = 2;
    first.cache.invalidate(Catalogue, 'product', '1');
    await until('the other pod has heard', async () => (await second.catalogue.product('1'))?.price === 2);
  });

  it('forgets level 1 when the server of a Cluster that it heard invalidations from is lost', async () => {
    const { cluster, admins } = await ownCluster();
    const { catalogue } = await pod('shop', cluster);
    await catalogue.secret('x');
    await catalogue.secret('x');
    expect(source.loads).toEqual(['brands', 'secret x']);
    for (const admin of admins) await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await until('level 1 is empty', async () => {
      await catalogue.secret('x');
      return source.loads.filter((load) => load === 'secret x').length > 1;
    });
  });
});
