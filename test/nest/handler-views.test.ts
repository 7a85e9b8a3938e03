import 'reflect-metadata';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Inject,
  Injectable,
  type OnModuleInit,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { afterEach, describe, expect, it } from 'vitest';
import { DeferWork } from '../../src/index.js';
import { adapterOf, acrossNests } from '../fixtures/app.js';
import { closeApps, listeningApp } from '../fixtures/build-app.js';

type Handler = ((...parameters: unknown[]) => unknown) & { audit?: string };
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

describe.each(acrossNests('express'))('what others see of a handler on %s', (adapter) => {
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
