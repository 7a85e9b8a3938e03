import {
  All,
  Controller,
  Get,
  Head,
  Module,
  Post,
  RequestMapping,
  RequestMethod,
  Version,
  VersioningType,
} from '@nestjs/common';
import { ApplicationConfig, NestFactory, ModulesContainer, RouterModule } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { controllerMethods, findHandler, listPathStarts } from '../../../src/request/handlers.js';
import type { RouteHandler } from '../../../src/request/routes.js';

type Find = (method: string, path: string) => RouteHandler | null;

async function handlersOf(controllers: (new () => object)[], imports: object[] = []): Promise<Find> {
  @Module({ controllers, imports: imports as never[] })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const methods = controllerMethods(app.get(ModulesContainer));
  await app.close();
  return (method, path) => findHandler(methods, method, path);
}
const nameOf = (find: Find, method: string, path: string): string | null => find(method, path)?.name ?? null;

describe('the handler behind a route', () => {
  @Controller()
  class Root {
    @Get() root(): void {}
    @Get(':page') page(): void {}
  }
  @Controller(['users', '/people/'])
  class Users {
    @Get() list(): void {}
    @Get(':id') find(): void {}
    @Post(['', 'many']) create(): void {}
    @Head(':id') exists(): void {}
    @All('*rest') any(): void {}
    @RequestMapping({ path: 'mapped', method: RequestMethod.PATCH }) mapped(): void {}
    helper(): void {}
  }

  it('is found by method and path, whatever prefix stands before', async () => {
    const find = await handlersOf([Root, Users]);
    const found = Object.entries({
      'GET /users': 'Users.list',
      'GET /people': 'Users.list',
      'GET /api/v1/users/:id': 'Users.find',
      'POST /users': 'Users.create',
      'POST /users/many': 'Users.create',
      'HEAD /users/:id': 'Users.exists',
      'ALL /users/*rest': 'Users.any',
      'PATCH /users/mapped': 'Users.mapped',
      'GET /': 'Root.root',
      'GET /:page': 'Root.page',
      'GET /api/': 'Root.root',
      'DELETE /users/:id': null,
    });
    for (const [route, name] of found) {
      const [method, path] = route.split(' ') as [string, string];
      expect(nameOf(find, method, path), route).toBe(name);
    }
  });

  it('is the one with the longest path of its own', async () => {
    @Controller('orders/users')
    class OrdersOfUsers {
      @Get(':id') find(): void {}
    }
    const find = await handlersOf([OrdersOfUsers, Root, Users]);
    expect(nameOf(find, 'GET', '/orders/users/:id')).toBe('OrdersOfUsers.find');
    expect(nameOf(find, 'GET', '/users/:id')).toBe('Users.find');
  });

  it('is the one without a prefix, though the path of another controller ends its own', async () => {
    const find = await handlersOf([Users, Root]);
    expect(nameOf(find, 'GET', '/users')).toBe('Users.list');
    expect(nameOf(find, 'GET', '/')).toBe('Root.root');
  });

  it('is found below the path of its module', async () => {
    @Module({ controllers: [Users] })
    class UsersModule {}
    const find = await handlersOf(
      [Root],
      [UsersModule, RouterModule.register([{ path: 'admin', module: UsersModule }])],
    );
    expect(nameOf(find, 'GET', '/admin/users/:id')).toBe('Users.find');
  });

  it('is told by the version in the path', async () => {
    @Controller({ path: 'cats', version: '1' })
    class First {
      @Get() list(): void {}
    }
    @Controller({ path: 'cats', version: ['2', '12'] })
    class Second {
      @Get() list(): void {}
      @Get() @Version('3') third(): void {}
    }
    const find = await handlersOf([First, Second]);
    const names = ['/v1/cats', '/v2/cats', '/v3/cats', '/v12/cats'].map((path) => nameOf(find, 'GET', path));
    expect(names).toEqual(['First.list', 'Second.list', 'Second.third', 'Second.list']);
  });
});

describe('handlers that share a method and a path', () => {
  @Controller({ path: 'cats', version: '1' })
  class First {
    @Get() list(): void {}
  }
  @Controller({ path: 'cats', version: '2' })
  class Second {
    @Get() list(): void {}
  }

  it('share a name, in the order of their registration', async () => {
    expect(nameOf(await handlersOf([First, Second]), 'GET', '/cats')).toBe('First.list | Second.list');
  });
});

it('what Nest puts before the paths of handlers is the global prefix, unless it excludes some, and a version of the URI', async () => {
  @Controller({ path: 'cats', version: '2' })
  class Cats {
    @Get() list(): void {}
  }
  @Module({ controllers: [Cats] })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const methods = controllerMethods(app.get(ModulesContainer));
  await app.close();
  const config = new ApplicationConfig();
  expect([...listPathStarts(config, methods)]).toEqual(['']);
  config.setGlobalPrefix('/api/');
  expect([...listPathStarts(config, methods)]).toEqual(['/api']);
  config.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  expect([...listPathStarts(config, methods)]).toEqual(['/api', '/api/v1', '/api/v2']);
  config.setGlobalPrefixOptions({
    exclude: [{ path: 'health', requestMethod: RequestMethod.GET, pathRegex: /health/ }],
  });
  expect([...listPathStarts(config, methods)]).toEqual(['/api', '/api/v1', '/api/v2', '', '/v1', '/v2']);
  config.enableVersioning({ type: VersioningType.URI, prefix: false });
  expect([...listPathStarts(config, methods)]).toEqual(['/api', '/api/2', '', '/2']);
  expect(findHandler(methods, 'GET', '/api/v2/cats', listPathStarts(config, methods))).toBeNull();
});
