import {
  All,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  type OnModuleInit,
  Param,
  Scope,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { acrossNests } from '../fixtures/app.js';
import { SkipPerf } from '../../src/index.js';
import { chooseForms, startApplication } from './applications.js';

type Methods = Record<string, (this: unknown, ...parameters: unknown[]) => unknown>;

/** Anew for each application: these tests change classes. */
function build(scope = Scope.DEFAULT) {
  const Roles = Reflector.createDecorator<string[]>();
  const seen: Record<string, unknown>[] = [];

  @Injectable()
  class RolesGuard implements CanActivate {
    constructor(private readonly reflector: Reflector) {}
    canActivate(context: ExecutionContext) {
      const targets = [context.getHandler(), context.getClass()];
      const { early, late } = context.getHandler() as unknown as Record<string, unknown>;
      seen.push({ name: context.getHandler().name, length: context.getHandler().length, early, late });
      const named = this.reflector.getAllAndOverride<string[] | undefined>('roles', targets);
      const roles = named ?? this.reflector.getAllAndMerge(Roles, targets);
      const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
      return roles.length === 0 || roles.includes(headers['x-role'] ?? '');
    }
  }

  @Controller({ path: 'guarded', scope })
  @UseGuards(RolesGuard)
  class GuardedController {
    readonly own = 'own';
    @Get('open')
    open() {
      return 'open';
    }
    @Get('admin')
    @Roles(['admin'])
    admin() {
      return 'admin';
    }
    @Get('owner/:id')
    @SetMetadata('roles', ['owner'])
    owner(@Param('id') id: string) {
      return { id, own: this.own, parameters: arguments.length };
    }
    /** Its role is set by a module. */
    @Get('audited')
    audited() {
      return 'audited';
    }
  }

  @Module({})
  class PolicyModule implements OnModuleInit {
    onModuleInit() {
      Reflect.defineMetadata('roles', ['auditor'], GuardedController.prototype.audited);
    }
  }
  const application = { imports: [PolicyModule], controllers: [GuardedController] };
  return { GuardedController, methods: GuardedController.prototype as unknown as Methods, application, seen };
}

@Controller('every')
class EveryController {
  @All('method')
  method() {
    return 'any';
  }
  @All('skipped')
  @SkipPerf()
  skipped() {
    return 'none';
  }
}

describe.each(acrossNests('fastify'))('on %s', (adapter) => {
  it('`@All()` is one handler, and heeds its decorators', async () => {
    const { url, newRecords, close } = await startApplication('instrumented', adapter, {
      controllers: [EveryController],
    });
    for (const method of ['GET', 'PUT']) {
      for (const path of ['method', 'skipped']) await fetch(`${url}/every/${path}`, { method });
    }
    const records = await newRecords();
    await close();
    expect(records!.map(({ method, route, handler }) => [method, route, handler])).toEqual([
      ['GET', '/every/method', 'EveryController.method'],
      ['PUT', '/every/method', 'EveryController.method'],
    ]);
  });

  describe.each(chooseForms(adapter))('in the %s form', (form) => {
    const as = (role: string) => ({ headers: { 'x-role': role } });

    describe.each([
      ['singleton', Scope.DEFAULT],
      ['request-scoped', Scope.REQUEST],
    ])('a guard of a %s controller', (_name, scope) => {
      it('answers by role, also where a module sets it in onModuleInit', async () => {
        const { ask, close } = await startApplication(form, adapter, build(scope).application);
        const wanted: [path: string, role: string, status: number][] = [
          ['open', '', 200],
          ['admin', 'user', 403],
          ['admin', 'admin', 200],
          ['owner/7', 'user', 403],
          ['owner/7', 'owner', 200],
          ['audited', 'user', 403],
          ['audited', 'auditor', 200],
        ];
        const answers: typeof wanted = [];
        for (const [path, role] of wanted) answers.push([path, role, (await ask(`/guarded/${path}`, as(role))).status]);
        await close();
        expect(answers).toEqual(wanted);
      });

      it('sees a role that is set while the application runs', async () => {
        const { methods, application } = build(scope);
        const { ask, close } = await startApplication(form, adapter, application);
        const before = await ask('/guarded/open', as('user'));
        Reflect.defineMetadata('roles', ['auditor'], methods['open']!);
        const after = await ask('/guarded/open', as('user'));
        await close();
        expect([before.status, after.status]).toEqual([200, 403]);
      });

      it('sees the name, the length and the properties of the method, also those that are set later', async () => {
        const { methods, application, seen } = build(scope);
        Object.assign(methods['owner']!, { early: 1 });
        const { ask, close } = await startApplication(form, adapter, application);
        await ask('/guarded/owner/7', as('owner'));
        Object.assign(methods['owner']!, { early: 2, late: 3 });
        await ask('/guarded/owner/7', as('owner'));
        await close();
        expect(seen).toEqual([
          { name: 'owner', length: 1, early: 1, late: undefined },
          { name: 'owner', length: 1, early: 2, late: 3 },
        ]);
      });
    });

    it('a method that is replaced on the instance before the application starts is called, once', async () => {
      const { GuardedController, application } = build();
      const calls: unknown[] = [];
      const { app, ask, close } = await startApplication(form, adapter, {
        ...application,
        main: (app) => {
          const instance = app.get<Methods>(GuardedController);
          const original = instance['owner']!;
          instance['owner'] = function (...parameters) {
            calls.push({ own: this === instance, parameters: parameters.length });
            return { spied: original.apply(this, parameters) };
          };
        },
      });
      const { text } = await ask('/guarded/owner/7', as('owner'));
      const direct = app.get<Methods>(GuardedController)['owner']!('8');
      await close();
      expect(JSON.parse(text)).toEqual({ spied: { id: '7', own: 'own', parameters: 1 } });
      expect(direct).toEqual({ spied: { id: '8', own: 'own', parameters: 1 } });
      expect(calls).toEqual([
        { own: true, parameters: 1 },
        { own: true, parameters: 1 },
      ]);
    });

    it('a method that a library wraps on the instance in onModuleInit stays wrapped; the route is older', async () => {
      const { GuardedController, application } = build();
      let instance: Methods = {};
      class Wrapping implements OnModuleInit {
        onModuleInit() {
          const method = instance['open']!;
          instance['open'] = function (...parameters) {
            return `wrapped ${String(method.apply(this, parameters))}`;
          };
        }
      }
      const { app, ask, close } = await startApplication(form, adapter, {
        ...application,
        providers: [Wrapping],
        main: (app) => (instance = app.get<Methods>(GuardedController)),
      });
      const { text } = await ask('/guarded/open');
      const direct = app.get(GuardedController).open();
      await close();
      expect({ text, direct }).toEqual({ text: 'open', direct: 'wrapped open' });
    });

    it('hooks find the methods of the class on the instance', async () => {
      const { GuardedController, methods, application } = build();
      const found: Record<string, boolean> = {};
      let instance: Methods = {};
      class Hooks {
        private look(hook: string) {
          found[hook] = ['open', 'admin', 'owner'].every((name) => instance[name] === methods[name]);
        }
        onModuleInit() {
          this.look('onModuleInit');
        }
        onApplicationBootstrap() {
          this.look('onApplicationBootstrap');
        }
        onModuleDestroy() {
          this.look('onModuleDestroy');
        }
      }
      const { close } = await startApplication(form, adapter, {
        ...application,
        providers: [Hooks],
        main: (app) => (instance = app.get<Methods>(GuardedController)),
      });
      await close();
      expect(found).toEqual({ onModuleInit: true, onApplicationBootstrap: true, onModuleDestroy: true });
    });

    it('a method that is replaced on the prototype of a running application is called where Nest calls it', async () => {
      const singleton = build();
      const scoped = build(Scope.REQUEST);
      const answers: unknown[] = [];
      for (const { GuardedController, application, methods } of [singleton, scoped]) {
        const { app, ask, close } = await startApplication(form, adapter, application);
        methods['open'] = () => 'replaced';
        answers.push((await ask('/guarded/open')).text);
        if (application === singleton.application) answers.push(app.get(GuardedController).open());
        await close();
      }
      expect(answers).toEqual(['open', 'replaced', 'replaced']);
    });

    it('the instance has the properties that its class gives it', async () => {
      const { GuardedController, application } = build();
      const { app, close } = await startApplication(form, adapter, application);
      const properties = Reflect.ownKeys(app.get(GuardedController));
      await close();
      expect(properties).toEqual(['own']);
    });
  });
});
