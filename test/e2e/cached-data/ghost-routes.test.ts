import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { cache, Cached } from '../../../src/entries/cache.js';
import { PerfService } from '../../../src/index.js';
import { adapters, startApp, type TestApp } from '../../fixtures/app.js';

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 60_000, ghost: true })
  async related(id: string) {
    await delay(20);
    return id;
  }
}

@Controller()
class ShopController {
  constructor(@Inject(Catalogue) private readonly catalogue: Catalogue) {}

  /** Two calls at once are half of its time, not all of it. */
  @Get('products')
  async products() {
    await delay(20);
    return Promise.all(['a', 'b'].map((id) => this.catalogue.related(id)));
  }

  /** Little of its time, however slow the machine is. */
  @Get('report')
  async report() {
    const startedMs = performance.now();
    const related = await this.catalogue.related('a');
    await delay(20 * (performance.now() - startedMs));
    return related;
  }

  @Get('live')
  live() {
    return {};
  }
}

let running: TestApp;
afterEach(() => running.close());

describe.each(adapters)('a ghost cache, on %s', (adapter) => {
  it('says which route it would make faster, and by what share of its time', async () => {
    running = await startApp(adapter, {
      perf: { extensions: [cache()] },
      metadata: { controllers: [ShopController], providers: [Catalogue] },
    });
    const get = async (path: string): Promise<void> => void (await (await fetch(`${running.url}/${path}`)).text());
    // Alone: it waits for a multiple of what a busy machine makes of 20 ms.
    await get('report');
    const atOnce = [...Array.from({ length: 6 }, () => 'products'), 'live'];
    for (let round = 0; round < 10; round++) await Promise.all(atOnce.map(get));
    await running.requests();
    const { findings } = running.app.get(PerfService).snapshot();
    const found = findings.filter(({ kind }) => kind === 'worth-caching');
    expect(found).toMatchObject([{ route: 'GET /products' }]);
    const [, share, saved, savedShare] =
      /^GET \/products: (\d+) % of its time is Catalogue\.related; `@Cached\(\{ ttlMs: \d+_000 \}\)` would have saved (\d+) ms a request, (\d+) % of its time$/
        .exec(found[0]!.text)!
        .map(Number);
    expect(share).toBeGreaterThan(25);
    expect(share).toBeLessThan(75);
    expect(saved).toBeGreaterThan(10);
    expect(savedShare).toBeGreaterThan(0.7 * share!);
    expect(savedShare).toBeLessThanOrEqual(share!);
  });
});
