// What must compile and what must not, checked by `npm run typecheck`.
import { PerfModule, type PerfSnapshot } from 'nestjs-perf';
import { cache, Cached, PerfCache, Preloaded, type CachedMethodStats } from 'nestjs-perf/cache';
import { redisCache } from 'nestjs-perf/redis';
import { Redis } from 'ioredis';
import { expectTypeOf } from 'vitest';

declare const perfCache: PerfCache;

export class Catalogue {
  @Cached({
    ttlMs: 60_000,
    staleMs: 600_000,
    timeoutMs: 1_000,
    waitMs: 0,
    refreshAhead: 0.8,
    maxEntries: 10,
    level2: false,
  })
  async product(id: string): Promise<{ id: string }> {
    return { id };
  }

  @Cached({ ttlMs: 1_000, key: (user: { id: string }, page: number) => `${user.id} ${page}` })
  orders(_user: { id: string }, _page: number): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  @Cached({ ttlMs: 1_000, batch: true })
  async stock(ids: readonly string[]): Promise<readonly number[]> {
    return ids.map((id) => id.length);
  }

  @Preloaded({ everyMs: 1_000, required: false, timeoutMs: 100 })
  async brands(): Promise<readonly string[]> {
    return [];
  }

  // @ts-expect-error What is cached comes in a promise.
  @Cached({ ttlMs: 1_000 })
  price(): number {
    return 1;
  }

  // @ts-expect-error How long?
  @Cached({ staleMs: 1_000 })
  async never(): Promise<void> {}

  // @ts-expect-error A key is a string.
  @Cached({ ttlMs: 1_000, key: (id: number) => id })
  async wrong(id: number): Promise<number> {
    return id;
  }
}

PerfModule.forRoot({ extensions: [cache()] });
PerfModule.forRoot({ extensions: [cache({ maxEntries: 10, maxBytes: 1_000 })] });
for (const connection of ['redis://cache', { host: 'cache', db: 1 }, new Redis({ lazyConnect: true })]) {
  PerfModule.forRoot({ extensions: [cache({ level2: redisCache({ connection, prefix: 'shop', deadlineMs: 50 }) })] });
}
// @ts-expect-error That is none.
cache({ level2: {} });

perfCache.invalidate(Catalogue, 'product', '1');
perfCache.invalidateAll(Catalogue);
perfCache.invalidateAll(Catalogue, 'product');
expectTypeOf(perfCache.stats()).toEqualTypeOf<readonly CachedMethodStats[]>();
expectTypeOf<PerfSnapshot['cache']>().toEqualTypeOf<readonly CachedMethodStats[] | null>();
expectTypeOf<CachedMethodStats['savedMs']>().toEqualTypeOf<number>();
perfCache.for(Catalogue).product.invalidate('42');
perfCache.for(Catalogue).stock.invalidate(['1', '2']);
perfCache.for(Catalogue).brands.invalidateAll();
// @ts-expect-error An id is a string.
perfCache.for(Catalogue).product.invalidate(42);
// @ts-expect-error There is no such method.
perfCache.for(Catalogue).produkt.invalidate('42');
// @ts-expect-error It returns no promise.
perfCache.for(Catalogue).price.invalidateAll();
