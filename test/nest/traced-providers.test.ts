import { Controller, Get, Injectable, Inject } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cache, Cached } from '../../src/entries/cache.js';
import { DeferWork, PerfService } from '../../src/index.js';
import { byNest, startApp, type TestApp } from '../fixtures/app.js';

/** Stands before an object as tracers of providers do: each function that is read from it is one of the tracer's, with its metadata. */
function traced(instance: unknown): unknown {
  if (typeof instance !== 'object' || instance === null) return instance;
  return new Proxy(instance, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function' || name === 'constructor') return value;
      const spanned = (...parameters: unknown[]): unknown => Reflect.apply(value, target, parameters);
      for (const key of Reflect.getMetadataKeys(value) as unknown[])
        Reflect.defineMetadata(key, Reflect.getMetadata(key, value), spanned);
      return spanned;
    },
  });
}

@Injectable()
class Prices {
  asked = 0;

  @Cached({ ttlMs: 60_000 })
  find(id: string): Promise<number> {
    this.asked++;
    return Promise.resolve(id.length);
  }
}

const sent: string[] = [];

@Controller('prices')
class PricesController {
  constructor(
    @Inject(Prices) private readonly prices: Prices,
    @Inject(PerfService) private readonly perf: PerfService,
  ) {}

  @Get(':id')
  @DeferWork(({ result }) => void sent.push(JSON.stringify(result)))
  async find() {
    return { price: await this.prices.find('seven'), measured: this.perf.health().status };
  }
}

describe.each(byNest('express'))('an application whose providers are all traced, on %s', (adapter) => {
  let server: TestApp;
  beforeAll(async () => {
    sent.length = 0;
    server = await startApp(adapter, {
      perf: { dashboard: { authorize: () => true }, users: true, extensions: [cache()] },
      metadata: { controllers: [PricesController], providers: [Prices] },
      nest: { instrument: { instanceDecorator: traced } },
    });
  });
  afterAll(() => server.close());

  it('boots, answers and is measured as without tracing', async () => {
    for (let n = 0; n < 2; n++)
      expect(await (await fetch(`${server.url}/prices/7`)).json()).toEqual({ price: 5, measured: 'ok' });
    const records = await server.requests();
    expect(records.map(({ route, status, handler }) => [route, status, handler])).toEqual(
      Array.from({ length: 2 }, () => ['/prices/:id', 200, 'PricesController.find']),
    );
    expect(sent).toHaveLength(2);
    expect(server.app.get(Prices).asked).toBe(1);
    expect((await fetch(`${server.url}/perf`)).status).toBe(200);
  });
});
