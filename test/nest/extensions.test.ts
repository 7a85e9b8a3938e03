import {
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  Optional,
  UseGuards,
  type DynamicModule,
  type ModuleMetadata,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { cache, Cached, PerfCache, Preloaded } from '../../src/entries/cache.js';
import { resilience, Upstream, type ResilientUpstream } from '../../src/entries/resilience.js';
import { offload, Offload } from '../../src/entries/offload.js';
import { memorySink } from '../../src/entries/testing.js';
import { FEATURE } from '../../src/request/extension.js';
import type { Feature } from '../../src/request/feature.js';
import {
  Deferrer,
  Experiments,
  PerfModule,
  PerfService,
  ResourceSampler,
  type PerfExtension,
  type PerfModuleOptions,
} from '../../src/index.js';
import { adapterOf, type Adapter, acrossNests } from '../fixtures/app.js';
import { Bound } from '../fixtures/bound.js';
import { Lines } from '../fixtures/lines.js';

const GREETING = Symbol('GREETING');
const WORDS = 'WORDS';

/** An ordinary provider, with Nest's own hooks. */
@Injectable()
class Greeter implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly life: string[] = [];
  constructor(@Inject(WORDS) private readonly words: readonly string[]) {}

  onApplicationBootstrap(): void {
    this.life.push('bootstrap');
  }
  onApplicationShutdown(): void {
    this.life.push('shutdown');
  }
  greet(): string {
    return this.words.join(' ');
  }
}

/** A value, a class that injects it, and a factory that injects both the class and what the module offers. */
const greetings = (words: readonly string[] = ['hello', 'world']): PerfExtension => ({
  name: 'greetings',
  providers: [
    { provide: WORDS, useValue: words },
    Greeter,
    {
      provide: GREETING,
      inject: [Greeter, PerfService],
      useFactory: (greeter: Greeter, perf: PerfService) => ({
        text: () => `${greeter.greet()}, ${perf.verdicts().length} verdicts`,
      }),
    },
  ],
});

interface Greeting {
  text(): string;
}

@Controller()
class GreetingController {
  constructor(
    @Inject(GREETING) private readonly greeting: Greeting,
    @Inject(WORDS) private readonly words: readonly string[],
    @Inject(Greeter) private readonly greeter: Greeter,
  ) {}

  @Get()
  greet() {
    return { text: this.greeting.text(), words: this.words, greeted: this.greeter.greet() };
  }
}
const greeted = { text: 'hello world, 0 verdicts', words: ['hello', 'world'], greeted: 'hello world' };

@Module({ controllers: [GreetingController] })
class GreetingModule {}

async function boot(adapter: Adapter, module: DynamicModule, metadata: ModuleMetadata = {}) {
  @Module({ ...metadata, imports: [module, ...(metadata.imports ?? [])] })
  class RootModule {}
  const options = { logger: false, abortOnError: false } as const;
  const app = await NestFactory.create(RootModule, adapterOf(adapter), options);
  await app.listen(0, '127.0.0.1');
  return app;
}

describe.each(acrossNests('fastify'))('an extension, on %s', (adapter) => {
  const extensions = [greetings()];
  it.each<[string, () => DynamicModule]>([
    ['forRoot', () => PerfModule.forRoot({ extensions })],
    ['forRoot and `isGlobal: false`', () => PerfModule.forRoot({ extensions, isGlobal: false })],
    ['forRootAsync', () => PerfModule.forRootAsync({ extensions, useFactory: () => ({ latency: { slowMs: 5 } }) })],
    [
      'forRootAsync and `isGlobal: false`',
      () => PerfModule.forRootAsync({ extensions, isGlobal: false, useFactory: async () => ({}) }),
    ],
    ['the kill switch on', () => PerfModule.forRoot({ extensions, enabled: false })],
  ])('gives its providers to every module, and Nest calls their hooks, with %s', async (_form, module) => {
    const app = await boot(adapter, module(), { imports: [GreetingModule] });
    const { life } = app.get(Greeter);
    expect(await (await fetch(await app.getUrl())).json()).toEqual(greeted);
    expect(life).toEqual(['bootstrap']);
    await app.close();
    expect(life).toEqual(['bootstrap', 'shutdown']);
  });
});

describe('the providers of an extension', () => {
  it.each([true, false])('may inject every class that the module offers, with `isGlobal: %s`', async (isGlobal) => {
    const offered = [PerfService, Deferrer, Experiments, ResourceSampler];
    const asking = { provide: 'asking', inject: offered, useFactory: (...given: object[]) => given };
    const app = await boot(
      'fastify',
      PerfModule.forRoot({ isGlobal, extensions: [{ name: 'asking', providers: [asking] }] }),
    );
    const given = app.get<object[]>('asking');
    for (const [index, one] of offered.entries()) {
      expect(given[index]).toBeInstanceOf(one);
      expect(given[index]).toBe(app.get(one));
    }
    await app.close();
  });

  it('may inject what the modules beside `useFactory` export', async () => {
    const SHOP = Symbol('SHOP');
    @Module({ providers: [{ provide: SHOP, useValue: 'books' }], exports: [SHOP] })
    class ShopModule {}
    const providers = [{ provide: WORDS, inject: [SHOP], useFactory: (shop: string) => ['we sell', shop] }];
    const app = await boot(
      'express',
      PerfModule.forRootAsync({
        imports: [ShopModule],
        inject: [SHOP],
        useFactory: (shop: string) => ({ release: shop }),
        extensions: [{ name: 'shop', providers }],
      }),
    );
    expect(app.get(WORDS)).toEqual(['we sell', 'books']);
    await app.close();
  });

  it('are there in an application without HTTP', async () => {
    const context = await NestFactory.createApplicationContext(PerfModule.forRoot({ extensions: [greetings()] }), {
      logger: false,
      abortOnError: false,
    });
    expect(context.get<Greeting>(GREETING).text()).toBe('hello world, 0 verdicts');
    await context.close();
  });

  it('need no types of the compiler', async () => {
    class Untyped {
      constructor(
        readonly options: object | undefined,
        readonly greeting: Greeting,
      ) {}
    }
    Reflect.deleteMetadata('design:paramtypes', Untyped);
    Optional()(Untyped, undefined, 0);
    Inject(GREETING)(Untyped, undefined, 1);
    const app = await boot('fastify', PerfModule.forRoot({ extensions: [greetings()] }), { providers: [Untyped] });
    expect(app.get(Untyped).greeting.text()).toBe(greeted.text);
    await app.close();
  });

  it('give way to fakes of a test', async () => {
    const testing = Test.createTestingModule({
      imports: [PerfModule.forRoot({ extensions: [greetings()] }), GreetingModule],
    });
    const fake = { text: () => 'fake' };
    const tested = await testing.overrideProvider(GREETING).useValue(fake).compile();
    expect(tested.get(GreetingController).greet()).toMatchObject({ text: 'fake', greeted: 'hello world' });
    await tested.createNestApplication({ logger: false }).init();
    await tested.close();
  });
});

describe('extensions', () => {
  it('stop the boot where one stands twice, or is none', () => {
    expect(() => PerfModule.forRoot({ extensions: [greetings(), cache(), greetings()] })).toThrow(
      'PERF_ERR_OPTION: `extensions` must be a list in which each extension stands once, got an array of 3. "greetings" stands there twice.',
    );
    const useFactory = (): PerfModuleOptions => ({});
    expect(() => PerfModule.forRootAsync({ extensions: [cache(), cache()], useFactory })).toThrow(
      'PERF_ERR_OPTION: `extensions` must be a list in which each extension stands once, got an array of 2. "cache" stands there twice.',
    );
    for (const [given, shown] of [
      ['cache', '`"cache"` (string)'],
      [cache, 'a function'],
      [{ name: 'cache' }, 'an object'],
      [{ name: '', providers: [] }, 'an object'],
    ] as const) {
      const message = `PERF_ERR_OPTION: \`extensions[0]\` must be an extension, as \`cache()\` makes one, got ${shown}.`;
      expect(() => PerfModule.forRoot({ extensions: [given as never] })).toThrow(message);
      expect(() => PerfModule.forRootAsync({ extensions: [given as never], useFactory })).toThrow(message);
    }
  });

  it('stop the boot in what a factory returns, and say where they belong', async () => {
    class OptionsClass {
      create = (): PerfModuleOptions => ({ extensions: [greetings()] });
    }
    for (const module of [
      PerfModule.forRootAsync({ useFactory: () => ({ extensions: [greetings()] }) }),
      PerfModule.forRootAsync({ useClass: OptionsClass }),
    ]) {
      await expect(boot('fastify', module)).rejects.toMatchObject({
        name: 'PerfError',
        code: 'PERF_ERR_OPTION',
        message:
          'PERF_ERR_OPTION: `extensions` must stand beside `useFactory`, not in what it returns: their providers are part of the module. ' +
          'Write PerfModule.forRootAsync({ extensions: [cache()], useFactory: … }).',
      });
    }
  });

  it('drain and close one after the other, although one of them fails', async () => {
    const ended: string[] = [];
    const feature = (name: string, failing: boolean): PerfExtension => {
      const end = (phase: string) => async (): Promise<void> => {
        ended.push(`${name} ${phase}`);
        if (failing) throw new Error(`${name} cannot`);
      };
      const given: Feature & { readonly [FEATURE]: true } = {
        [FEATURE]: true,
        closing: end('closing'),
        drain: end('drain'),
        close: end('close'),
      };
      return { name, providers: [{ provide: name, useValue: given }] };
    };
    const lines = new Lines();
    const sink = memorySink();
    let isClosed = false;
    const sinks = [{ ...sink, flush: async () => void ended.push('flush'), close: async () => void (isClosed = true) }];
    @Controller()
    class OkController {
      @Get()
      get() {
        return 'ok';
      }
    }
    @Module({
      imports: [
        PerfModule.forRoot({
          sinks,
          extensions: [feature('first', false), feature('broken', true), feature('last', false)],
        }),
      ],
      controllers: [OkController],
    })
    class RootModule {}
    const app = await NestFactory.create(RootModule, adapterOf('fastify'), { logger: lines, abortOnError: false });
    await app.listen(0, '127.0.0.1');
    expect(await (await fetch(await app.getUrl())).text()).toBe('ok');
    await app.close();
    expect(ended).toEqual([
      'first closing',
      'broken closing',
      'last closing',
      'last drain',
      'broken drain',
      'first drain',
      'flush',
      'last close',
      'broken close',
      'first close',
    ]);
    // A busy machine adds blocks.
    const requests = sink.records.filter(({ kind }) => kind === 'request');
    expect(requests).toMatchObject([{ route: '/', status: 200 }]);
    expect(isClosed).toBe(true);
    const failures = lines.all.filter((line) => line.includes('cannot'));
    expect(failures).toEqual([
      'closing failed: broken cannot. Everything else is closed all the same.',
      'draining failed: broken cannot. Everything else is closed all the same.',
      'closing failed: broken cannot. Everything else is closed all the same.',
    ]);
  });
});

describe('a missing extension', () => {
  @Controller()
  class CacheController {
    constructor(@Inject(PerfCache) readonly perfCache: PerfCache) {}
    @Get()
    get() {
      return this.perfCache.stats();
    }
  }
  class CacheProperty {
    @Inject(PerfCache) readonly perfCache!: object;
  }
  const ADD = 'Add it: PerfModule.forRoot({ extensions: [cache()] }).';

  it.each<[string, ModuleMetadata]>([
    ['constructor', { controllers: [CacheController] }],
    ['property', { providers: [{ provide: 'asking', useClass: CacheProperty }] }],
    ['factory', { providers: [{ provide: 'asking', inject: [PerfCache], useFactory: () => ({}) }] }],
  ])('stops the boot where a %s injects one of its providers', async (_what, metadata) => {
    for (const module of [
      PerfModule.forRoot(),
      PerfModule.forRoot({ isGlobal: false, extensions: [greetings()] }),
      PerfModule.forRootAsync({ useFactory: () => ({}) }),
    ]) {
      const booting = boot('fastify', module, metadata);
      await expect(booting).rejects.toMatchObject({ name: 'PerfError', code: 'PERF_ERR_EXTENSION' });
      await expect(booting).rejects.toThrow(
        /`PerfCache` on "(a factory|Cache(Controller|Property))" does nothing without its extension\. Add it: PerfModule\.forRoot\(\{ extensions: \[cache\(\)\] \}\)\./,
      );
    }
  });

  it('is none for who injects one of its providers if it is there', async () => {
    class Optionally {
      constructor(@Optional() @Inject(PerfCache) readonly perfCache?: object) {}
    }
    const app = await boot('fastify', PerfModule.forRoot(), { providers: [Optionally] });
    expect(app.get(Optionally).perfCache).toBeUndefined();
    await app.close();
  });

  it('is none where a test or a module provides something of its own', async () => {
    const own = { provide: PerfCache, useValue: { stats: () => ['own'] } };
    const app = await boot('fastify', PerfModule.forRoot(), { controllers: [CacheController], providers: [own] });
    expect(await (await fetch(await app.getUrl())).json()).toEqual(['own']);
    await app.close();
    const testing = Test.createTestingModule({ imports: [PerfModule.forRoot()], controllers: [CacheController] });
    const tested = await testing
      .overrideProvider(PerfCache)
      .useValue({ stats: () => ['fake'] })
      .compile();
    expect(tested.get(CacheController).get()).toEqual(['fake']);
    await tested.createNestApplication({ logger: false }).init();
    await tested.close();
  });

  it('stops the boot over `@Upstream()`, with the line, and over one that the extension does not have', async () => {
    @Injectable()
    class Asking {
      constructor(@Upstream('git-hub') readonly upstream: ResilientUpstream) {}
    }
    await expect(boot('express', PerfModule.forRoot(), { providers: [Asking] })).rejects.toThrow(
      'PERF_ERR_EXTENSION: `@Upstream(\'git-hub\')` on "Asking" does nothing without its extension. ' +
        "Add it: PerfModule.forRoot({ extensions: [resilience({ upstreams: { 'git-hub': { deadlineMs: 2_000 } } })] }).",
    );
    const other = resilience({ upstreams: { gitlab: { deadlineMs: 2_000 } } });
    await expect(
      boot('express', PerfModule.forRoot({ extensions: [other] }), { providers: [Asking] }),
    ).rejects.toMatchObject({ code: 'PERF_ERR_DECORATOR' });
  });

  @Injectable()
  class Service {
    @Cached({ ttlMs: 1_000 })
    async load() {}
  }
  it.each<[string, ModuleMetadata]>([
    ['class', { providers: [Service] }],
    ['factory', { providers: [{ provide: 'service', useFactory: () => new Service() }] }],
  ])('stops the boot over a decorator of a %s provider', async (_what, metadata) => {
    await expect(boot('fastify', PerfModule.forRoot(), metadata)).rejects.toThrow(
      `PERF_ERR_EXTENSION: \`@Cached()\` on "Service.load" does nothing without its extension. ${ADD}`,
    );
  });

  it("stops the boot where another decorator has put a function or an accessor in the method's place", async () => {
    const Wrapped: MethodDecorator = (_target, _name, descriptor) => {
      descriptor.value = (() => {}) as never;
    };
    for (const Placed of [Wrapped, Bound]) {
      class Hidden {
        @Placed
        @Preloaded({ everyMs: 1_000 })
        async load() {}
      }
      await expect(boot('fastify', PerfModule.forRoot(), { providers: [Hidden] })).rejects.toThrow(
        `PERF_ERR_EXTENSION: \`@Preloaded()\` on "Hidden.load" does nothing without its extension. ${ADD}`,
      );
    }
  });

  it('stops the boot over a decorator of a guard', async () => {
    @Injectable()
    class CachingGuard {
      @Cached({ ttlMs: 1_000 })
      async canActivate() {
        return true;
      }
    }
    @UseGuards(CachingGuard)
    @Controller()
    class GuardedController {
      @Get()
      get() {}
    }
    await expect(boot('express', PerfModule.forRoot(), { controllers: [GuardedController] })).rejects.toThrow(
      'PERF_ERR_EXTENSION: `@Cached()` on "CachingGuard.canActivate" does nothing without its extension.',
    );
  });

  it('stops the boot for one of two decorators of a method, in whichever order they stand', async () => {
    class Above {
      @Cached({ ttlMs: 1_000 })
      @Offload()
      async both() {}
    }
    class Below {
      @Offload()
      @Cached({ ttlMs: 1_000 })
      async both() {}
    }
    for (const provider of [Above, Below]) {
      const withOne = (extension: PerfExtension) =>
        boot('fastify', PerfModule.forRoot({ extensions: [extension] }), { providers: [provider] });
      await expect(withOne(cache())).rejects.toThrow(
        `PERF_ERR_EXTENSION: \`@Offload()\` on "${provider.name}.both" does nothing without its extension. ` +
          "Add it: PerfModule.forRoot({ extensions: [offload({ module: new URL('./offload.module.js', import.meta.url) })] }).",
      );
      await expect(withOne(offload({ module: new URL('./none.module.js', import.meta.url) }))).rejects.toThrow(
        `PERF_ERR_EXTENSION: \`@Cached()\` on "${provider.name}.both" does nothing without its extension. ${ADD}`,
      );
    }
  });
});
