import {
  Body,
  Controller,
  createParamDecorator,
  Get,
  Module,
  type OnApplicationBootstrap,
  type OnModuleInit,
  Param,
  Post,
  Req,
  Scope,
  Sse,
} from '@nestjs/common';
import { of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { acrossNests } from '../fixtures/app.js';
import { chooseForms, createApplication, startApplication } from './applications.js';

const Own = createParamDecorator(() => 'own');

/** Anew for each test: what is left on a class is what these tests are about. */
function build(scope = Scope.DEFAULT) {
  class Dto {
    name = '';
  }
  class Base {
    @Get('inherited/:id')
    inherited(@Param('id') id: string) {
      return { id, parameters: arguments.length };
    }
  }
  @Controller({ path: 'described', scope })
  class DescribedController extends Base {
    @Get('none')
    none() {
      return { parameters: arguments.length };
    }
    @Get('one/:id')
    async one(@Param('id') id: string, @Own() own: string, _optional?: number) {
      return { id, own, parameters: arguments.length };
    }
    @Get('request')
    request(@Req() request: { url: string }) {
      return { url: request.url, parameters: arguments.length };
    }
    @Post()
    create(@Body() dto: Dto): Dto {
      return dto;
    }
    @Sse('events')
    events() {
      return of({ data: { parameters: arguments.length } });
    }
  }
  return { Base, DescribedController };
}

type Class = abstract new () => object;

/** All that libraries such as Swagger read: keys and values on the classes, their methods and their parameters. */
function described(...classes: Class[]): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const read = (where: string, target: object, property?: string): void => {
    const keys = Reflect.getOwnMetadataKeys(target, property!) as unknown[];
    for (const key of keys) {
      const value: unknown = Reflect.getOwnMetadata(key, target, property!);
      found[`${where} ${String(key)}`] =
        Array.isArray(value) || Object(value) !== value ? value : { ...(value as object) };
    }
  };
  for (const of of classes) {
    const prototype = of.prototype as Record<string, object>;
    read(of.name, of);
    read(`${of.name}.prototype`, prototype);
    for (const name of Object.getOwnPropertyNames(prototype)) {
      // Nest itself puts a property on the class.
      if (name === 'constructor') continue;
      read(`${of.name} ${name}`, of, name);
      read(`${of.name}.prototype ${name}`, prototype, name);
      read(`${of.name}.prototype.${name}`, prototype[name]!);
      found[`${of.name}.${name}`] = [
        Object.getOwnPropertyDescriptor(prototype, name),
        Reflect.ownKeys(prototype[name]!),
      ];
    }
  }
  return found;
}

const parametersOf: [string, number][] = [
  ['none', 0],
  ['one/7', 2],
  ['request', 1],
  ['inherited/7', 1],
];

describe.each(acrossNests('fastify'))('on %s', (adapter) => {
  describe.each([
    ['singleton', Scope.DEFAULT],
    ['request-scoped', Scope.REQUEST],
  ])('a %s controller', (_name, scope) => {
    it.each(chooseForms(adapter))(
      'has the metadata of its declaration before, during and after the %s form',
      async (form) => {
        const { Base, DescribedController } = build(scope);
        const before = described(Base, DescribedController);
        const { ask, close } = await startApplication(form, adapter, { controllers: [DescribedController] });
        await ask('/described/one/7');
        const during = described(Base, DescribedController);
        await close();
        expect(during).toEqual(before);
        expect(described(Base, DescribedController)).toEqual(before);
        const types: unknown = Reflect.getMetadata('design:paramtypes', DescribedController.prototype, 'one');
        expect(types).toEqual([String, String, Number]);
        expect(Object.keys(before['DescribedController one __routeArguments__'] as object)).toHaveLength(2);
      },
    );

    it.each(chooseForms(adapter))(
      'has it during the hooks of the %s form that run once routes are registered',
      async (form) => {
        const { Base, DescribedController } = build(scope);
        const before = described(Base, DescribedController);
        let found: unknown;
        class Hook implements OnApplicationBootstrap {
          onApplicationBootstrap() {
            found = described(Base, DescribedController);
          }
        }
        const application = { controllers: [DescribedController], providers: [Hook] };
        const { close } = await startApplication(form, adapter, application);
        await close();
        expect(found).toEqual(before);
      },
    );

    it('is called in a later application without the module as if there had been none before', async () => {
      const { DescribedController } = build(scope);
      const application = { controllers: [DescribedController] };
      const parameters: Record<string, unknown>[] = [];
      for (const form of ['bare', 'instrumented', 'instrumented', 'bare'] as const) {
        const { ask, close } = await startApplication(form, adapter, application);
        const found: Record<string, unknown> = {};
        for (const [path] of parametersOf) {
          const { text } = await ask(`/described/${path}`);
          found[path] = (JSON.parse(text) as { parameters: number }).parameters;
        }
        found['events'] = (await ask('/described/events')).text;
        await close();
        parameters.push(found);
      }
      expect(parameters[0]).toMatchObject(Object.fromEntries(parametersOf));
      for (const later of parameters.slice(1)) expect(later).toEqual(parameters[0]);
    });

    it('is called in an application without the module beside one that has it as if it were alone', async () => {
      const { DescribedController } = build(scope);
      const application = { controllers: [DescribedController] };
      const instrumented = await startApplication('instrumented', adapter, application);
      const bare = await startApplication('bare', adapter, application);
      const found: unknown[] = [];
      for (const { ask } of [bare, instrumented]) {
        for (const [path] of parametersOf) {
          found.push((JSON.parse((await ask(`/described/${path}`)).text) as { parameters: number }).parameters);
        }
      }
      await bare.close();
      await instrumented.close();
      expect(found).toEqual([0, 2, 1, 1, 0, 2, 1, 1]);
    });
  });

  const failures: [string, () => object][] = [
    [
      'the constructor of a provider',
      () => {
        class Failing {
          constructor() {
            throw new Error('as wanted');
          }
        }
        return { providers: [Failing] };
      },
    ],
    [
      'the configuration of middleware',
      () => ({
        configure: () => {
          throw new Error('as wanted');
        },
      }),
    ],
    [
      'onModuleInit',
      () => {
        @Module({})
        class FailingModule implements OnModuleInit {
          async onModuleInit() {
            await Promise.resolve();
            throw new Error('as wanted');
          }
        }
        return { imports: [FailingModule] };
      },
    ],
    [
      'onApplicationBootstrap',
      () => {
        @Module({})
        class FailingModule implements OnApplicationBootstrap {
          onApplicationBootstrap() {
            throw new Error('as wanted');
          }
        }
        return { imports: [FailingModule] };
      },
    ],
    [
      'the registration of a route',
      () => {
        @Controller('invalid')
        class InvalidController {
          @Get('as wanted/:id/:id(')
          invalid() {}
        }
        @Module({ controllers: [InvalidController] })
        class InvalidModule {}
        return { imports: [InvalidModule] };
      },
    ],
  ];
  describe.each(chooseForms(adapter))('in the %s form', (form) => {
    it.each(failures)('a boot that fails in %s leaves no metadata behind', async (_name, failure) => {
      const { Base, DescribedController } = build();
      const before = described(Base, DescribedController);
      const booting = async () => {
        const application = { controllers: [DescribedController], ...failure() };
        const { app } = await createApplication(form, adapter, application);
        await app.init().finally(() => app.close().catch(() => undefined));
      };
      await expect(booting()).rejects.toThrow();
      expect(described(Base, DescribedController)).toEqual(before);
      const { ask, close } = await startApplication('bare', adapter, { controllers: [DescribedController] });
      const { text } = await ask('/described/one/7');
      await close();
      expect(JSON.parse(text)).toEqual({ id: '7', own: 'own', parameters: 2 });
    });
  });
});
