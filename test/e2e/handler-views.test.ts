import 'reflect-metadata';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type OnModuleInit,
  Param,
  Query,
  Req,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { afterEach, describe, expect, it } from 'vitest';
import { DeferWork } from '../../src/index.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';

type Handler = ((...parameters: unknown[]) => unknown) & { audit?: string };
const registry = new WeakMap<object, string>();
const seen: Handler[] = [];

/** Lets in whose handler has the role, and keeps what it was given for a handler. */
@Injectable()
class RoleGuard implements CanActivate {
  constructor(@Inject(Reflector) private readonly reflector: Reflector) {}
  canActivate(context: ExecutionContext): boolean {
    const handler = context.getHandler() as Handler;
    seen.push(handler);
    return this.reflector.get<string | undefined>('role', handler) !== 'nobody';
  }
}

const nothing = (): void => {};
/** One without a decorator of this package's, and one with. */
function makeController() {
  @Controller('c')
  @UseGuards(RoleGuard)
  class ViewsController {
    @Get('plain')
    async plain() {
      return 'plain';
    }
    @Get('decorated')
    @DeferWork(nothing)
    async decorated() {
      return 'decorated';
    }
  }
  return ViewsController;
}

afterEach(closeApps);

describe.each(adapters)('what others see of a handler on %s', (adapter) => {
  describe.each(['plain', 'decorated'] as const)('%s', (name) => {
    it('metadata that a module defines in onModuleInit is seen by guards', async () => {
      const ViewsController = makeController();
      @Injectable()
      class Roles implements OnModuleInit {
        onModuleInit(): void {
          Reflect.defineMetadata('role', 'nobody', ViewsController.prototype[name]);
        }
      }
      const { url } = await listeningApp(adapterOf(adapter), {
        metadata: { controllers: [ViewsController], providers: [Roles] },
      });
      expect((await fetch(`${url}/c/${name}`)).status).toBe(403);
      Reflect.defineMetadata('role', 'all', ViewsController.prototype[name]);
      expect((await fetch(`${url}/c/${name}`)).status).toBe(200);
    });

    it('properties that stand on the method later are there', async () => {
      const ViewsController = makeController();
      const method = ViewsController.prototype[name] as Handler;
      const { url } = await listeningApp(adapterOf(adapter), { metadata: { controllers: [ViewsController] } });
      method.audit = 'since boot';
      seen.length = 0;
      await fetch(`${url}/c/${name}`);
      const [handler] = seen;
      expect([handler?.audit, handler?.name, handler?.length]).toEqual(['since boot', name, method.length]);
    });

    it('the controller’s instance follows its prototype, also when that is patched after boot', async () => {
      const ViewsController = makeController();
      const { app } = await listeningApp(adapterOf(adapter), { metadata: { controllers: [ViewsController] } });
      const instance = app.get(ViewsController);
      expect(Object.keys(instance)).toEqual([]);
      ViewsController.prototype[name] = async () => 'patched';
      expect(await instance[name]()).toBe('patched');
    });
  });

  it('what stands for a handler leads registries to the method along its prototypes', async () => {
    const ViewsController = makeController();
    registry.set(ViewsController.prototype.decorated, 'known');
    const { url } = await listeningApp(adapterOf(adapter), { metadata: { controllers: [ViewsController] } });
    seen.length = 0;
    await fetch(`${url}/c/decorated`);
    const chain: object[] = [];
    for (let at: object | null = seen[0]!; at !== null; at = Reflect.getPrototypeOf(at)) chain.push(at);
    expect(chain.some((at) => registry.get(at) === 'known')).toBe(true);
  });
});

describe.each(adapters)('what is left of an application on %s', (adapter) => {
  const received: unknown[][] = [];
  function makeArguments(scope: Scope) {
    @Controller({ path: 'arguments', scope })
    class ArgumentsController {
      @Get(':id')
      @DeferWork(nothing)
      async get(@Param('id') _id: string, @Query('q') _q: string) {
        // oxlint-disable-next-line prefer-rest-params -- an argument too many has no name
        received.push([...(arguments as unknown as unknown[])]);
        return 'done';
      }
      @Get()
      @DeferWork(nothing)
      async none() {
        // oxlint-disable-next-line prefer-rest-params
        received.push([...(arguments as unknown as unknown[])]);
        return 'done';
      }
    }
    return ArgumentsController;
  }
  const keysOf = (type: { prototype: Record<string, object> }): unknown[] => [
    ...[type, type.prototype, type.prototype['get']!, type.prototype['none']!].map((target) =>
      Reflect.getMetadataKeys(target).map(String).sort(),
    ),
    ...['get', 'none'].map((name) => Reflect.getMetadata('__routeArguments__', type, name) as unknown),
    ...['get', 'none'].map((name) => Reflect.getMetadata('__interceptors__', type.prototype[name]!) as unknown),
    ...['get', 'none'].map((name) => Reflect.getMetadataKeys(type, name).map(String).sort()),
  ];

  it.each([
    ['a static', Scope.DEFAULT],
    ['a request-scoped', Scope.REQUEST],
  ])(
    '%s controller is as it was, and in a later application without the module gets its own arguments',
    async (_, scope) => {
      const ArgumentsController = makeArguments(scope);
      const type = ArgumentsController as unknown as Parameters<typeof keysOf>[0];
      const before = structuredClone(keysOf(type));
      const call = async (url: string): Promise<void> => {
        received.length = 0;
        await fetch(`${url}/arguments/7?q=x`);
        await fetch(`${url}/arguments`);
        expect(received).toEqual([['7', 'x'], []]);
      };
      const metadata = { controllers: [ArgumentsController] };
      const measured = await listeningApp(adapterOf(adapter), { metadata });
      expect(structuredClone(keysOf(type))).toEqual(before);
      await call(measured.url);
      await measured.app.close();
      const bare = await listeningApp(adapterOf(adapter), { metadata, perf: null });
      await call(bare.url);
      const again = await listeningApp(adapterOf(adapter), { metadata });
      await call(again.url);
      expect(structuredClone(keysOf(type))).toEqual(before);
    },
  );

  it.each(['before', 'after'])(
    'a subclass that overrides a handler with a parameter more gets it, registered %s its base',
    async (order) => {
      @Controller('v1')
      class V1 {
        @Get(':id')
        @DeferWork(nothing)
        async get(@Param('id') id: string, ..._more: unknown[]): Promise<unknown> {
          return { id };
        }
        @Get('inherited/:id')
        @DeferWork(nothing)
        async inherited(@Param('id') id: string, @Query('q') q: string) {
          return { of: this.constructor.name, id, q };
        }
      }
      @Controller('v2')
      class V2 extends V1 {
        @Get(':id')
        @DeferWork(nothing)
        override async get(@Param('id') id: string, @Query('q') q: string, @Req() request: { url: string }) {
          return { id, q, url: request.url };
        }
      }
      const controllers = order === 'after' ? [V1, V2] : [V2, V1];
      const { url } = await listeningApp(adapterOf(adapter), { metadata: { controllers } });
      const get = async (path: string): Promise<unknown> => (await fetch(url + path)).json();
      expect(await get('/v2/7?q=x')).toEqual({ id: '7', q: 'x', url: '/v2/7?q=x' });
      expect(await get('/v1/7?q=x')).toEqual({ id: '7' });
      expect(await get('/v2/inherited/7?q=x')).toEqual({ of: 'V2', id: '7', q: 'x' });
      expect(await get('/v1/inherited/7?q=x')).toEqual({ of: 'V1', id: '7', q: 'x' });
    },
  );
});

it('a handler that is replaced on the instance by its own class is the one that runs', async () => {
  @Controller()
  class ArrowController {
    constructor() {
      const { get } = this;
      this.get = async () => `${await get.call(this)}, replaced by the constructor`;
    }
    @Get('arrow')
    async get() {
      return 'of the class';
    }
  }
  const { url } = await listeningApp(adapterOf('fastify'), { metadata: { controllers: [ArrowController] } });
  expect(await (await fetch(`${url}/arrow`)).text()).toBe('of the class, replaced by the constructor');
});
