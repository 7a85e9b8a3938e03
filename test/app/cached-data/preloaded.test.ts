import { Controller, Get, Inject, Injectable } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cache, PerfCache, Preloaded } from '../../../src/entries/cache.js';
import { PerfError } from '../../../src/index.js';
import { either, startApp, type TestApp } from '../../fixtures/app.js';
import { gate } from '../../fixtures/cached-data.js';
import { until } from '../../fixtures/until.js';

let sources: Record<string, () => Promise<unknown>>;
let loads: string[];
beforeEach(() => {
  sources = {};
  loads = [];
});

const load = (name: string): Promise<unknown> => {
  loads.push(name);
  return (sources[name] ?? (async () => name))();
};

@Injectable()
class Catalogue {
  @Preloaded({ everyMs: 60_000 })
  brands() {
    return load('brands');
  }
  @Preloaded({ everyMs: 60_000 })
  menus() {
    return load('menus');
  }
  @Preloaded({ everyMs: 60_000 })
  banners() {
    return load('banners');
  }
  @Preloaded({ everyMs: 60_000, timeoutMs: 200 })
  prices() {
    return load('prices');
  }
  @Preloaded({ everyMs: 20, required: false })
  rates() {
    return load('rates');
  }
}

@Controller()
class ShopController {
  constructor(@Inject(Catalogue) private readonly catalogue: Catalogue) {}

  @Get('brands')
  brands() {
    return this.catalogue.brands();
  }
  @Get('rates')
  rates() {
    return this.catalogue.rates();
  }
}

const metadata = { controllers: [ShopController], providers: [Catalogue] };
let app: TestApp | null = null;
afterEach(async () => {
  await app?.close();
  app = null;
});

describe.each(either('fastify'))('preloaded data, on %s', (adapter) => {
  it('is there before the server listens: five loads, and no request before them', async () => {
    const slow = gate<string[]>();
    sources['brands'] = () => slow.passed;
    const starting = startApp(adapter, { perf: { extensions: [cache()] }, metadata });
    await until('all loads', () => loads.length === 5);
    let listens = false;
    void starting.then(() => (listens = true));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(listens).toBe(false);
    slow.open(['acme']);
    app = await starting;
    expect(await (await fetch(`${app.url}/brands`)).json()).toEqual(['acme']);
    expect(loads.filter((name) => name === 'brands')).toHaveLength(1);
  });

  it('stops the boot when it is required and cannot be had, with the cause', async () => {
    const cause = new Error('no such table');
    sources['brands'] = async () => Promise.reject(cause);
    const error = await startApp(adapter, { perf: { extensions: [cache()] }, metadata }).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(PerfError);
    expect(error).toMatchObject({
      code: 'PERF_ERR_NOT_LOADED',
      message:
        'PERF_ERR_NOT_LOADED: `@Preloaded()` on "Catalogue.brands" could not be loaded before the server listens: no such table. ' +
        'With `required: false` the application starts without it.',
      cause,
    });
    // Nobody closes an application whose boot has failed.
    const { length } = loads;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(loads).toHaveLength(length);
  });

  it('stops the boot when it takes longer than `timeoutMs`', async () => {
    sources['prices'] = () => new Promise(() => {});
    await expect(startApp(adapter, { perf: { extensions: [cache()] }, metadata })).rejects.toThrow(
      '"Catalogue.prices" was not loaded within 200 ms',
    );
  });

  it('that is not required says so until it is there, and the boot does not wait', async () => {
    const first = gate<string>();
    sources['rates'] = () => first.passed;
    app = await startApp(adapter, { perf: { extensions: [cache()] }, metadata });
    const catalogue = app.app.get(Catalogue);
    await expect(catalogue.rates()).rejects.toMatchObject({ code: 'PERF_ERR_NOT_LOADED' });
    expect((await fetch(`${app.url}/rates`)).status).toBe(500);
    first.open('first');
    await until('the value', async () => (await catalogue.rates().catch(() => null)) === 'first');
    sources['rates'] = async () => 'second';
    await until('the next load', async () => (await catalogue.rates()) === 'second');
    sources['rates'] = async () => Promise.reject(new Error('dead'));
    await until('a load that fails', () =>
      app!.app
        .get(PerfCache)
        .stats()
        .some(({ failed }) => failed > 0),
    );
    expect(await catalogue.rates()).toBe('second');
  });

  it('is loaded with the kill switch on too, and by a closed application no more', async () => {
    app = await startApp(adapter, { perf: { extensions: [cache()], enabled: false }, metadata });
    await until('several loads', () => loads.filter((name) => name === 'rates').length > 2);
    expect(await (await fetch(`${app.url}/brands`)).text()).toBe('brands');
    await app.close();
    app = null;
    const { length } = loads;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(loads).toHaveLength(length);
  });
});
