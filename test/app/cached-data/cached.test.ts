import { Controller, Get, Inject, Injectable, Param } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { cache, Cached, PerfCache, Preloaded } from '../../../src/entries/cache.js';
import { PerfService } from '../../../src/index.js';
import { type Adapter, either, startApp, type TestApp } from '../../fixtures/app.js';

@Injectable()
class Catalogue {
  loads: string[] = [];

  @Cached({ ttlMs: 60_000 })
  async product(id: string) {
    this.loads.push(id);
    if (id === 'slow') await new Promise((resolve) => setTimeout(resolve, 20));
    return { id, price: 3 };
  }

  slow = false;

  /** Soon stale, and waited for then. */
  @Cached({ ttlMs: 500, staleMs: 60_000, waitMs: 10_000 })
  async stock() {
    if (this.slow) await new Promise((resolve) => setTimeout(resolve, 20));
    return [3];
  }

  /** A call from within. */
  async pair(id: string) {
    return [await this.product(id), await this.product(id)];
  }

  @Preloaded({ everyMs: 60_000 })
  async brands() {
    this.loads.push('brands');
    return ['acme'];
  }
}

@Controller()
class ShopController {
  constructor(@Inject(Catalogue) private readonly catalogue: Catalogue) {}

  @Get('products/:id')
  product(@Param('id') id: string) {
    return this.catalogue.product(id);
  }

  @Get('stock')
  stock() {
    return this.catalogue.stock();
  }

  @Get('brands')
  brands() {
    return this.catalogue.brands();
  }
}

const running: TestApp[] = [];
afterEach(async () => {
  for (const app of running.splice(0)) await app.close();
});

async function start(adapter: Adapter): Promise<TestApp> {
  const metadata = { controllers: [ShopController], providers: [Catalogue] };
  const app = await startApp(adapter, { perf: { extensions: [cache()] }, metadata });
  running.push(app);
  return app;
}

describe.each(either('express'))('cached data, on %s', (adapter) => {
  it('answers equal calls with one load, calls from within included', async () => {
    const app = await start(adapter);
    const catalogue = app.app.get(Catalogue);
    expect(catalogue.loads).toEqual(['brands']);
    for (let i = 0; i < 3; i++) {
      expect(await (await fetch(`${app.url}/products/7`)).json()).toEqual({ id: '7', price: 3 });
      expect(await (await fetch(`${app.url}/brands`)).json()).toEqual(['acme']);
    }
    const [first, second] = await catalogue.pair('7');
    expect(first).toBe(second);
    expect(catalogue.loads).toEqual(['brands', '7']);
    const perfCache = app.app.get(PerfCache);
    perfCache.invalidate(Catalogue, 'product', '7');
    await catalogue.product('7');
    expect(catalogue.loads).toEqual(['brands', '7', '7']);
    expect(app.app.get(PerfService).snapshot().cache).toMatchObject([
      { method: 'Catalogue.product', entries: 1, hits: 4, stale: 0, misses: 2, loads: 2, failed: 0 },
      { method: 'Catalogue.stock' },
      { method: 'Catalogue.brands', entries: 1, hits: 3, misses: 0, loads: 1 },
    ]);
    await app.close();
    await catalogue.product('7');
    expect(catalogue.loads).toHaveLength(4);
  });

  it('shows who waits for a load in the time of the request, and who does not', async () => {
    const app = await start(adapter);
    for (let i = 0; i < 2; i++) await (await fetch(`${app.url}/products/slow`)).text();
    const [waited, served] = await app.requests();
    expect(waited!.upstream).toMatchObject([{ target: 'cache Catalogue.product', kind: 'other', calls: 1, errors: 0 }]);
    expect(waited!.time!.upstreamMs).toBeGreaterThan(15);
    expect(served!.upstream ?? []).toEqual([]);
  });

  it('shows who waits for a stale value to be replaced in the time of the request too', async () => {
    const app = await start(adapter);
    await (await fetch(`${app.url}/stock`)).text();
    app.app.get(Catalogue).slow = true;
    await new Promise((resolve) => setTimeout(resolve, 510));
    await (await fetch(`${app.url}/stock`)).text();
    const [, waited] = await app.requests();
    expect(waited!.upstream).toMatchObject([{ target: 'cache Catalogue.stock', kind: 'other', calls: 1, errors: 0 }]);
    expect(waited!.time!.upstreamMs).toBeGreaterThan(15);
  });
});
