import { Inject, Injectable, SetMetadata } from '@nestjs/common';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Cached, PerfCache, Preloaded } from '../../../src/entries/cache.js';
import { Deferrer } from '../../../src/index.js';
import { Bound } from '../../fixtures/bound.js';
import { cacheOf, closeCaches, fakeTime } from '../../fixtures/cached-data.js';
import { until } from '../../fixtures/until.js';

afterEach(closeCaches);

@Injectable()
class Catalogue {
  loads = 0;
  shop = 'own';

  @Cached({ ttlMs: 60_000 })
  async product(id: string) {
    this.loads += 1;
    return `${id} of ${this.shop}`;
  }
}

const catalogueOf = (shop: string): Catalogue => Object.assign(new Catalogue(), { shop });

/** Overrides what is cached, and inherits it. */
class PlainCatalogue extends Catalogue {
  override async product(id: string) {
    this.loads += 1;
    return `plain ${id}`;
  }
}
class OtherCatalogue extends Catalogue {}

async function twice(catalogue: Catalogue): Promise<number> {
  await catalogue.product('1');
  await catalogue.product('1');
  return catalogue.loads;
}

describe('a decorated method', () => {
  it('is plain on an instance without an application, also of a class that an application caches', async () => {
    const { of } = await cacheOf(Catalogue);
    const plain = new Catalogue();
    expect([await twice(plain), await twice(of)]).toEqual([2, 1]);
    expect(Object.keys(of)).toEqual(Object.keys(plain));
    expect(of.product).toBe(Catalogue.prototype.product);
  });

  it('that an override calls is no value of the override', async () => {
    class Dear extends Catalogue {
      @Cached({ ttlMs: 60_000 })
      override async product(id: string) {
        return super.product(`dear ${id}`);
      }
    }
    const { of } = await cacheOf(Dear);
    expect(await twice(of)).toBe(1);
    expect(await of.product('1')).toEqual(await new Catalogue().product('dear 1'));
  });

  it('is plain again once the application has closed', async () => {
    const { of, app } = await cacheOf(Catalogue);
    await twice(of);
    await app.close();
    expect(Object.hasOwn(of, 'product')).toBe(false);
    expect(await twice(of)).toBe(3);
  });

  it('leaves no timer when the application closes, although a load is under way and another is due', async () => {
    class Slow {
      @Cached({ ttlMs: 1_000 })
      never() {
        return new Promise(() => {});
      }
      @Preloaded({ everyMs: 1_000 })
      async all() {}
    }
    const { of, app } = await cacheOf(Slow);
    fakeTime();
    void of.never();
    void of.all();
    app.get(PerfCache).invalidate(Slow, 'all');
    await new Promise(setImmediate);
    expect(vi.getTimerCount()).toBe(2);
    await app.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is cached on each instance for itself: of classes, factories, values and subclasses', async () => {
    const value = catalogueOf('value');
    const providers = [
      { provide: 'factory', useFactory: async () => catalogueOf('factory') },
      { provide: 'value', useValue: value },
      { provide: 'alias', useExisting: Catalogue },
      OtherCatalogue,
      PlainCatalogue,
    ];
    const { of: own, app, cache: perfCache } = await cacheOf(Catalogue, {}, { providers });
    const factory = app.get<Catalogue>('factory');
    expect(app.get('alias')).toBe(own);
    const all = [own, factory, value, app.get(OtherCatalogue)];
    expect(await Promise.all(all.map((each) => each.product('1')))).toEqual([
      '1 of own',
      '1 of factory',
      '1 of value',
      '1 of own',
    ]);
    for (const each of all) expect(await twice(each)).toBe(1);
    expect(await twice(app.get(PlainCatalogue))).toBe(2);
    expect(perfCache.stats().map(({ method }) => method)).toEqual([
      'Catalogue.product',
      'Catalogue(factory).product',
      'Catalogue(value).product',
      'OtherCatalogue.product',
    ]);
    perfCache.invalidateAll(Catalogue);
    for (const each of all) expect(await twice(each)).toBe(2);
  });

  it('of two applications does not meet, even on one instance', async () => {
    const shared = new Catalogue();
    const providers = [{ provide: 'shared', useValue: shared }];
    const [first, second] = [
      await cacheOf(OtherCatalogue, {}, { providers }),
      await cacheOf(OtherCatalogue, {}, { providers }),
    ];
    expect(await twice(first.of)).toBe(1);
    expect(await twice(second.of)).toBe(1);
    second.cache.invalidateAll(OtherCatalogue);
    expect([await twice(first.of), await twice(second.of)]).toEqual([1, 2]);
    // The newer application's.
    expect(await twice(shared)).toBe(1);
    await first.app.close();
    expect(await twice(shared)).toBe(1);
    await second.app.close();
    expect(await twice(shared)).toBe(3);
  });

  it('is plain again in whatever order two applications close', async () => {
    const shared = new Catalogue();
    const providers = [{ provide: 'shared', useValue: shared }];
    const first = await cacheOf(OtherCatalogue, {}, { providers });
    const second = await cacheOf(OtherCatalogue, {}, { providers });
    await first.app.close();
    expect(await twice(shared)).toBe(1);
    await second.app.close();
    expect(Object.hasOwn(shared, 'product')).toBe(false);
  });

  it('keeps its name, and what other decorators have said of it', async () => {
    class Scheduled {
      @Cached({ ttlMs: 60_000 })
      @SetMetadata('cron', '* * * * *')
      async rates(_currency: string) {}
    }
    const { of } = await cacheOf(Scheduled);
    const { name, length } = of.rates;
    expect([name, length, Reflect.getMetadata('cron', of.rates)]).toEqual(['rates', 1, '* * * * *']);
  });

  it('keeps what the instance had in its place', async () => {
    class Bound extends Catalogue {
      override product = super.product.bind(this);
    }
    const { of, app } = await cacheOf(Bound);
    expect(await twice(of)).toBe(1);
    await app.close();
    expect(Object.hasOwn(of, 'product')).toBe(true);
    expect(await twice(of)).toBe(3);
  });

  it('is one beneath an accessor that binds it, which stays as it is', async () => {
    class Bindings extends Catalogue {
      @Bound
      @Cached({ ttlMs: 60_000 })
      override product(id: string) {
        return super.product(id);
      }

      @Bound
      @Preloaded({ everyMs: 60_000 })
      async all() {
        return this.shop;
      }
    }
    const { app, of, cache } = await cacheOf(Bindings);
    expect([await twice(of), await of.all()]).toEqual([1, 'own']);
    cache.invalidate(Bindings, 'product', '1');
    expect(await twice(of)).toBe(2);
    await app.close();
    expect([await twice(of), await twice(new Bindings())]).toEqual([4, 2]);
  });
});

it('deferred work that waits for a load while the application closes waits for no longer than `timeoutMs`', async () => {
  let asked = 0;
  class Hung {
    @Cached({ ttlMs: 60_000, timeoutMs: 300 })
    value(): Promise<string> {
      asked += 1;
      return new Promise(() => {});
    }
  }
  const { app, of } = await cacheOf(Hung, {}, {}, { defer: { drainTimeoutMs: 5_000 } });
  let ended: unknown = 'lost';
  app.get(Deferrer).defer(async () => {
    await of.value().catch((error: { code: string }) => (ended = error.code));
  });
  await until('the load', () => asked === 1);
  await app.close();
  expect(ended).toBe('PERF_ERR_LOAD_TIMEOUT');
});

describe('PerfCache', () => {
  it('is injectable', async () => {
    @Injectable()
    class Editor {
      constructor(@Inject(PerfCache) readonly cache: PerfCache) {}
    }
    const { app } = await cacheOf(Catalogue, {}, { providers: [Editor] });
    expect(app.get(Editor).cache.stats()).toHaveLength(1);
  });
});
