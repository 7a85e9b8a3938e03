import { Controller, Get, Inject, Injectable, Scope, type ModuleMetadata } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { cache, Cached, Preloaded, type CachedOptions } from '../../../src/entries/cache.js';
import { PerfModule } from '../../../src/index.js';

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 60_000 })
  async product(id: string) {
    return id;
  }
}

async function bootError(metadata: ModuleMetadata, extensions = [cache()]): Promise<unknown> {
  const { imports: _, ...rest } = metadata;
  const module = { module: class {}, imports: [PerfModule.forRoot({ extensions, sinks: [] })], ...rest };
  const booted = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false }).catch(
    (error: unknown) => error as Error,
  );
  if (booted instanceof Error) return booted.message;
  await booted.close();
  return null;
}

describe('the boot stops', () => {
  @Injectable({ scope: Scope.REQUEST })
  class Scoped extends Catalogue {}
  @Injectable({ scope: Scope.TRANSIENT })
  class Transient extends Catalogue {}
  @Controller()
  class ShopController {
    @Get()
    @Cached({ ttlMs: 1_000 })
    async list() {}
  }
  it.each<[string, ModuleMetadata, string]>([
    ['request-scoped', { providers: [Scoped] }, '@Cached() on "Scoped.product" stands on a request-scoped provider.'],
    ['transient', { providers: [Transient] }, '@Cached() on "Transient.product" stands on a transient provider.'],
    ['controller', { controllers: [ShopController] }, '@Cached() on "ShopController.list" stands on a controller.'],
  ])('for a %s one', async (_what, metadata, message) => {
    expect(await bootError(metadata)).toContain(`PERF_ERR_DECORATOR: ${message}`);
  });

  it('for one that depends on a request', async () => {
    class Plain {}
    Injectable({ scope: Scope.REQUEST })(Plain);
    class Depends {
      @Preloaded({ everyMs: 1_000 })
      async all() {}
    }
    Injectable()(Depends);
    Inject(Plain)(Depends, undefined, 0);
    expect(await bootError({ providers: [Plain, Depends] })).toContain(
      '@Preloaded() on "Depends.all" stands on a request-scoped provider.',
    );
  });

  it('without the extension, with the line to add', async () => {
    expect(await bootError({ providers: [Catalogue] }, [])).toBe(
      'PERF_ERR_EXTENSION: `@Cached()` on "Catalogue.product" does nothing without its extension. ' +
        'Add it: PerfModule.forRoot({ extensions: [cache()] }).',
    );
  });
});

describe('a decorator says where it stands what is wrong', () => {
  const on = (options: unknown) => () =>
    Cached(options as CachedOptions)(Catalogue.prototype, 'other', { value: async () => {} });
  it.each<[unknown, string]>([
    [undefined, '`Catalogue.other @Cached.ttlMs` must be a number of milliseconds above 0, got `undefined`.'],
    [{ ttlMs: 0 }, '`Catalogue.other @Cached.ttlMs` must be a number of milliseconds above 0, got `0` (number).'],
    [
      { ttlMs: 1, staleMs: -1 },
      '`Catalogue.other @Cached.staleMs` must be a number of milliseconds of 0 or more, got `-1` (number).',
    ],
    [
      { ttlMs: 1, key: 'id' },
      '`Catalogue.other @Cached.key` must be a function of the arguments that returns a string, got `"id"` (string).',
    ],
    [
      { ttlMs: 1, refreshAhead: 2 },
      '`Catalogue.other @Cached.refreshAhead` must be a share of `ttlMs` above 0 and at most 1, got `2` (number).',
    ],
    [{ ttlMs: 1, ttl: 1 }, '`Catalogue.other @Cached.ttl` is not an option. Known options: '],
  ])('%o', (options, message) => {
    expect(on(options)).toThrow(`PERF_ERR_OPTION: ${message}`);
  });

  it('a static method, a symbol, arguments of a preloaded one, two at once', () => {
    const method = { value: async () => {} };
    const cached = Cached({ ttlMs: 1 });
    expect(() => cached(Catalogue, 'all', method)).toThrow(
      'PERF_ERR_DECORATOR: @Cached() on "Catalogue.all": it must be a method',
    );
    expect(() => cached(Catalogue.prototype, Symbol('x'), method)).toThrow('PERF_ERR_DECORATOR');
    const preloaded = Preloaded({ everyMs: 1 });
    expect(() => preloaded(class {}.prototype, 'one', { value: async (_id: string) => {} })).toThrow(
      'it must take no arguments',
    );
    expect(() => preloaded(Catalogue.prototype, 'product', method)).toThrow('one of its kind may stand there');
  });

  it('`cache()` itself', () => {
    expect(() => cache({ maxEntries: 0 })).toThrow(
      'PERF_ERR_OPTION: `cache.maxEntries` must be a whole number of entries above 0 and at most 10000000, got `0` (number).',
    );
    expect(() => cache({ level2: {} as never })).toThrow('PERF_ERR_OPTION: `cache.level2` must be a second level');
  });
});
