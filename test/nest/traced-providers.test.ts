import { Controller, Get, Injectable, Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cache, Cached } from '../../src/entries/cache.js';
import { offload, Offload } from '../../src/entries/offload.js';
import { DeferWork, PerfModule, PerfService } from '../../src/index.js';
import { acrossNests, startApp, type TestApp } from '../fixtures/app.js';

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
  find(id: string): Promise<number> {
    return Promise.resolve(id.length);
  }
}

@Injectable()
class CachedPrices {
  @Cached({ ttlMs: 60_000 })
  find(id: string): Promise<number> {
    return Promise.resolve(id.length);
  }
}

@Injectable()
class OffloadedPrices {
  @Offload()
  find(id: string): Promise<number> {
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

describe.each(acrossNests('express'))('an application whose providers are all traced, on %s', (adapter) => {
  let server: TestApp;
  beforeAll(async () => {
    sent.length = 0;
    server = await startApp(adapter, {
      perf: { dashboard: { authorize: () => true }, users: true },
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
    expect((await fetch(`${server.url}/perf`)).status).toBe(200);
  });
});

const workers = offload({ module: new URL('../fixtures/offload/burning.module.ts', import.meta.url) });

it.each([
  ['@Cached()', cache(), CachedPrices],
  ['@Offload()', workers, OffloadedPrices],
])('%s on a provider behind a Proxy stops the boot', async (_decorator, extension, provider) => {
  @Module({ imports: [PerfModule.forRoot({ eventLoop: false, extensions: [extension] })], providers: [provider] })
  class TracedModule {}
  const booting = NestFactory.createApplicationContext(TracedModule, {
    logger: false,
    abortOnError: false,
    instrument: { instanceDecorator: traced },
  });
  await expect(booting).rejects.toThrow(/PERF_ERR_DECORATOR: .*Prices\.find.*`Proxy`.*`instrument\.instanceDecorator`/);
});
