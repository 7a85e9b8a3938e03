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
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it } from 'vitest';
import { needExtension, offerService, type Extension } from '../../src/http/extension.js';
import type { Feature } from '../../src/http/feature.js';
import { PerfModule } from '../../src/index.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { Bound } from '../fixtures/bound.js';

const GREETING = Symbol('GREETING');

class Greeter implements Feature {
  constructor(private readonly said: string[]) {}
  readonly greeting = { text: 'hello' };
  install = () => void this.said.push('install');
  start = () => void this.said.push('start');
  drain = () => void this.said.push('drain');
  close = () => void this.said.push('close');
}

const greeter = (said: string[] = []): Extension => ({ name: 'greeter', create: () => new Greeter(said) });
offerService({
  token: GREETING,
  of: (feature) => (feature as Greeter).greeting,
  needed: { name: 'greeter', decorator: 'GREETING', add: 'extensions: [greeter()]' },
});

function Greets(): MethodDecorator {
  return (target, name) =>
    needExtension({ name: 'greeter', decorator: '@Greets()', add: 'extensions: [greeter()]' }, target, String(name));
}

@Controller()
class GreetingController {
  constructor(@Inject(GREETING) private readonly greeting: { text: string }) {}

  @Get()
  greet() {
    return this.greeting.text;
  }
}

class GreetingProperty {
  @Inject(GREETING) readonly greeting!: object;
}

@Injectable()
class GreetingGuard {
  @Greets()
  canActivate() {
    return true;
  }
}

@UseGuards(GreetingGuard)
@Controller()
class GuardedController {
  @Get()
  greet() {}
}

@Injectable()
class Service {
  @Greets()
  greet() {}
}

async function boot(adapter: (typeof adapters)[number], module: DynamicModule, metadata: ModuleMetadata = {}) {
  @Module({ ...metadata, imports: [module] })
  class RootModule {}
  const options = { logger: false, abortOnError: false } as const;
  const app = await NestFactory.create(RootModule, adapterOf(adapter), options);
  await app.listen(0, '127.0.0.1');
  return app;
}

describe.each(adapters)('an extension, on %s', (adapter) => {
  it.each<[string, (said: string[]) => DynamicModule]>([
    ['forRoot', (said) => PerfModule.forRoot({ extensions: [greeter(said)] })],
    ['forRootAsync', (said) => PerfModule.forRootAsync({ extensions: [greeter(said)], useFactory: () => ({}) })],
    ['a factory', (said) => PerfModule.forRootAsync({ useFactory: () => ({ extensions: [greeter(said)] }) })],
    ['the kill switch on', (said) => PerfModule.forRoot({ extensions: [greeter(said)], enabled: false })],
  ])('lives as long as the application, and its service can be injected, with %s', async (_form, module) => {
    const said: string[] = [];
    const app = await boot(adapter, module(said), { controllers: [GreetingController] });
    expect(said).toEqual(['install', 'start']);
    expect(await (await fetch(await app.getUrl())).text()).toBe('hello');
    await app.close();
  });
});

describe('extensions', () => {
  it('may come from the factory of `forRootAsync()`', async () => {
    const said: string[] = [];
    const app = await NestFactory.createApplicationContext(
      PerfModule.forRootAsync({ useFactory: () => ({ extensions: [greeter(said)] }) }),
      { logger: false, abortOnError: false },
    );
    await app.close();
    expect(said).toEqual(['install', 'start', 'drain', 'close']);
  });

  it('stop the boot where one stands twice, or is none', async () => {
    const twice = boot('express', PerfModule.forRoot({ extensions: [greeter(), greeter()] }));
    await expect(twice).rejects.toThrow(
      'PERF_ERR_OPTION: `extensions` must be a list in which each extension stands once, got an array of 2. "greeter" stands there twice.',
    );
    expect(() => PerfModule.forRoot({ extensions: ['cache' as never] })).toThrow(
      'PERF_ERR_OPTION: `extensions[0]` must be an extension, as `cache()` makes one, got `"cache"` (string).',
    );
  });

  it.each<[string, ModuleMetadata]>([
    ['constructor', { controllers: [GreetingController] }],
    ['property', { providers: [{ provide: 'asking', useClass: GreetingProperty }] }],
    ['factory', { providers: [{ provide: 'asking', inject: [GREETING], useFactory: () => ({}) }] }],
  ])('stop the boot where a %s asks for a service of one that is not there', async (_what, metadata) => {
    for (const module of [PerfModule.forRoot(), PerfModule.forRootAsync({ useFactory: () => ({}) })]) {
      await expect(boot('fastify', module, metadata)).rejects.toThrow(
        /PERF_ERR_EXTENSION: `GREETING` on "(asking|Greeting(Controller|Property))" does nothing without its extension/,
      );
    }
  });

  it('boot where a test or a module gives something of its own instead', async () => {
    const own = { provide: GREETING, useValue: { text: 'fake' } };
    const app = await boot('fastify', PerfModule.forRoot(), { controllers: [GreetingController], providers: [own] });
    expect(await (await fetch(await app.getUrl())).text()).toBe('fake');
    await app.close();
    const testing = Test.createTestingModule({ imports: [PerfModule.forRoot()], controllers: [GreetingController] });
    const tested = await testing.overrideProvider(GREETING).useValue({ text: 'fake' }).compile();
    expect(tested.get(GreetingController).greet()).toBe('fake');
    await tested.createNestApplication().init();
    await tested.close();
  });

  it('give their services to modules that import `PerfModule`, with `isGlobal: false`', async () => {
    @Module({ imports: [PerfModule], controllers: [GreetingController] })
    class FeatureModule {}
    const scoped = PerfModule.forRoot({ isGlobal: false, extensions: [greeter()] });
    const context = await NestFactory.createApplicationContext(
      { module: class RootModule {}, imports: [scoped, FeatureModule] },
      { logger: false, abortOnError: false },
    );
    expect(context.get(GreetingController).greet()).toBe('hello');
    await context.close();
  });

  it('need no types of the compiler', async () => {
    class Untyped {
      constructor(
        readonly options: object | undefined,
        readonly greeting: { text: string },
      ) {}
    }
    Reflect.deleteMetadata('design:paramtypes', Untyped);
    Optional()(Untyped, undefined, 0);
    Inject(GREETING)(Untyped, undefined, 1);
    const app = await boot('fastify', PerfModule.forRoot({ extensions: [greeter()] }), { providers: [Untyped] });
    expect(app.get(Untyped).greeting.text).toBe('hello');
    await app.close();
  });

  it('leave out a service that is optional', async () => {
    class Optionally {
      constructor(@Optional() @Inject(GREETING) readonly greeting?: object) {}
    }
    const app = await boot('fastify', PerfModule.forRoot(), { providers: [Optionally] });
    expect(app.get(Optionally).greeting).toBeUndefined();
    await app.close();
  });

  it.each<[string, ModuleMetadata]>([
    ['class', { providers: [Service] }],
    ['factory', { providers: [{ provide: 'service', useFactory: () => new Service() }] }],
  ])('stop the boot where a decorator of a %s provider has none', async (_what, metadata) => {
    await expect(boot('fastify', PerfModule.forRoot(), metadata)).rejects.toThrow(
      'PERF_ERR_EXTENSION: `@Greets()` on "Service.greet" does nothing without its extension. ' +
        'Add it: PerfModule.forRoot({ extensions: [greeter()] }).',
    );
  });

  it("stop the boot where another decorator has put a function or an accessor in the method's place", async () => {
    const Wrapped: MethodDecorator = (_target, _name, descriptor) => {
      descriptor.value = (() => {}) as never;
    };
    for (const Placed of [Wrapped, Bound]) {
      class Hidden {
        @Placed
        @Greets()
        greet() {}
      }
      await expect(boot('fastify', PerfModule.forRoot(), { providers: [Hidden] })).rejects.toThrow(
        'PERF_ERR_EXTENSION: `@Greets()` on "Hidden.greet" does nothing without its extension.',
      );
    }
  });

  it('stop the boot where a decorator of a guard has none', async () => {
    await expect(boot('express', PerfModule.forRoot(), { controllers: [GuardedController] })).rejects.toThrow(
      'PERF_ERR_EXTENSION: `@Greets()` on "GreetingGuard.canActivate" does nothing without its extension.',
    );
  });

  it('stop the boot where one of two decorators of a method has none, in whichever order they stand', async () => {
    const Parts = (): MethodDecorator => (target, name) =>
      needExtension({ name: 'parting', decorator: '@Parts()', add: 'extensions: [parting()]' }, target, String(name));
    class Above {
      @Parts()
      @Greets()
      both() {}
    }
    class Below {
      @Greets()
      @Parts()
      both() {}
    }
    for (const provider of [Above, Below]) {
      const booting = boot('fastify', PerfModule.forRoot({ extensions: [greeter()] }), { providers: [provider] });
      await expect(booting).rejects.toThrow(
        `PERF_ERR_EXTENSION: \`@Parts()\` on "${provider.name}.both" does nothing without its extension.`,
      );
      const parting: Extension = { name: 'parting', create: () => ({}) };
      await expect(
        boot('fastify', PerfModule.forRoot({ extensions: [parting] }), { providers: [provider] }),
      ).rejects.toThrow(`PERF_ERR_EXTENSION: \`@Greets()\` on "${provider.name}.both"`);
    }
  });
});
