import {
  Body,
  Controller,
  Get,
  type INestApplication,
  Inject,
  Injectable,
  Module,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
  Param,
  Post,
  RawBody,
  RequestMethod,
} from '@nestjs/common';
import { APP_GUARD, APP_INTERCEPTOR, APP_PIPE, RouterModule } from '@nestjs/core';
import type { CallHandler, ExecutionContext } from '@nestjs/common';
import { map } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Adapter, byNest } from '../fixtures/app.js';
import { RawClient } from '../fixtures/socket.js';
import { withEventLoop } from '../fixtures/usual.js';
import { bothForms, createApplication, forms, startApplication, withJson } from './applications.js';

withEventLoop();

@Controller()
class RootController {
  @Get()
  root() {
    return 'root';
  }
  @Get('hello/:name')
  hello(@Param('name') name: string) {
    return `hello ${name}`;
  }
  @Get('health')
  health() {
    return 'healthy';
  }
  @Post('health')
  change() {
    return 'changed';
  }
  @Get(['first', 'second/deep'])
  either() {
    return 'either';
  }
  @Get('files/*')
  wildcard() {
    return 'a file';
  }
}
@Controller('child')
class ChildController {
  @Get()
  child() {
    return 'child';
  }
}
@Module({ controllers: [ChildController] })
class ChildModule {}

describe.each(byNest('express'))('routes on %s', (adapter) => {
  describe('without a prefix', () => {
    const { ask } = bothForms(adapter, () => ({ controllers: [RootController] }));
    it.each([
      ['/', 'root'],
      ['/hello/ann%20b', 'hello ann b'],
      ['/first', 'either'],
      ['/second/deep', 'either'],
      ['/files/a/b.txt', 'a file'],
    ])('%s answers "%s"', async (path, text) => {
      expect(await ask(path)).toMatchObject({ status: 200, text });
    });
  });

  describe('under a global prefix', () => {
    const exclude = ['/', { path: 'health', method: RequestMethod.GET }];
    const { ask } = bothForms(adapter, () => ({
      controllers: [RootController],
      main: (app) => app.setGlobalPrefix('api/:tenant', { exclude }),
    }));
    it.each([
      ['GET', '/api/a/hello/ann', 200],
      ['GET', '/hello/ann', 404],
      ['GET', '/health', 200],
      ['GET', '/api/a/health', 404],
      ['POST', '/api/a/health', 201],
      ['POST', '/health', 404],
      ['GET', '/', 200],
    ])('%s %s answers %i', async (method, path, status) => {
      expect((await ask(path, { method })).status).toBe(status);
    });
  });

  describe('of the router module', () => {
    const { ask } = bothForms(adapter, () => ({
      controllers: [RootController],
      imports: [ChildModule, RouterModule.register([{ path: 'parent/:id', module: ChildModule }])],
    }));
    it('stand under the path of their module', async () => {
      expect(await ask('/parent/7/child')).toMatchObject({ status: 200, text: 'child' });
      expect((await ask('/child')).status).toBe(404);
    });
  });
});

@Controller('bodies')
class BodiesController {
  @Post('raw')
  raw(@RawBody() raw: Buffer | undefined, @Body() body: unknown) {
    return { raw: raw?.toString('latin1'), body, parameters: arguments.length };
  }
}
type WithParsers = INestApplication & { useBodyParser(type: string, options?: object): void };

describe.each(byNest('fastify'))('bodies on %s', (adapter) => {
  describe('kept raw', () => {
    const { json } = bothForms(adapter, () => ({ controllers: [BodiesController], nest: { rawBody: true } }));
    it('are given beside what was parsed', async () => {
      const body = '{ "amount":0.0 }';
      const headers = { 'content-type': 'application/json' };
      expect(await json('/bodies/raw', { method: 'POST', headers, body })).toEqual({
        raw: body,
        body: { amount: 0 },
        parameters: 2,
      });
    });
    it('of forms are parsed', async () => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const answer = await json('/bodies/raw', { method: 'POST', headers, body: 'a=1&b=c%20d' });
      expect(answer).toMatchObject({ body: { a: '1', b: 'c d' } });
    });
  });

  describe('read by parsers of the application', () => {
    const { ask } = bothForms(adapter, () => ({
      controllers: [BodiesController],
      nest: { bodyParser: false },
      main: (app) => {
        if (adapter === 'express') (app as WithParsers).useBodyParser('json', { limit: '50b' });
        else (app as WithParsers).useBodyParser('application/json', { bodyLimit: 50 });
      },
    }));
    it('keep to their limit', async () => {
      expect((await ask('/bodies/raw', withJson('POST', { a: 1 }))).status).toBe(201);
      expect((await ask('/bodies/raw', withJson('POST', { a: 'x'.repeat(100) }))).status).toBe(413);
    });
  });
});

@Controller('enhanced')
class EnhancedController {
  @Get(':id')
  one(@Param('id') id: string) {
    return { id };
  }
}
const admitting = {
  canActivate: (context: ExecutionContext) => !context.getArgByIndex<{ url: string }>(0).url.includes('refused'),
};
const wrapping = {
  intercept: (context: ExecutionContext, next: CallHandler) =>
    next.handle().pipe(map((data: unknown) => ({ data, arguments: context.getArgs().length }))),
};

describe.each(byNest('express'))('enhancers of a whole application on %s', (adapter) => {
  const { ask, json } = bothForms(adapter, () => ({
    controllers: [EnhancedController],
    providers: [
      { provide: APP_GUARD, useValue: admitting },
      { provide: APP_INTERCEPTOR, useValue: wrapping },
      { provide: APP_PIPE, useValue: { transform: (value: unknown) => `piped ${String(value)}` } },
    ],
    main: (app) => app.useGlobalInterceptors(wrapping).useGlobalPipes({ transform: (value: unknown) => value }),
  }));

  it('run around every handler', async () => {
    const count = adapter === 'express' ? 3 : 2;
    const answer = (await json('/enhanced/7')) as { data: { data: unknown; arguments: number }; arguments: number };
    expect(answer.data.data).toEqual({ id: 'piped 7' });
    expect(answer.arguments).toBe(answer.data.arguments);
    expect(answer.arguments).toBeGreaterThanOrEqual(count);
  });

  it('refuse', async () => {
    expect((await ask('/enhanced/refused')).status).toBe(403);
  });
});

describe.each(byNest('fastify'))('the life of an application on %s', (adapter: Adapter) => {
  const LOG = Symbol('log');
  it.each(forms)('calls the hooks of the %s form in their order and refuses connections once closed', async (form) => {
    const log: string[] = [];
    @Injectable()
    class Hooks implements OnModuleInit, OnModuleDestroy, OnApplicationShutdown {
      constructor(@Inject(LOG) private readonly log: string[]) {}
      onModuleInit() {
        this.log.push('init');
      }
      onApplicationBootstrap() {
        this.log.push('bootstrap');
      }
      async onModuleDestroy() {
        await new Promise((resolve) => setImmediate(resolve));
        this.log.push('destroy');
      }
      beforeApplicationShutdown(signal?: string) {
        this.log.push(`before shutdown ${signal}`);
      }
      onApplicationShutdown(signal?: string) {
        this.log.push(`shutdown ${signal}`);
      }
    }
    const { app, port, ask, close } = await startApplication(form, adapter, {
      controllers: [RootController],
      providers: [Hooks, { provide: LOG, useValue: log }],
    });
    expect((await ask('/')).text).toBe('root');
    await close();
    expect(app.getHttpServer().listening).toBe(false);
    await expect(RawClient.open(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(log).toEqual(['init', 'bootstrap', 'destroy', 'before shutdown undefined', 'shutdown undefined']);
  });

  it.each(forms)('closes the %s form also when it never listened', async (form) => {
    const { app } = await createApplication(form, adapter, { controllers: [RootController] });
    await app.init();
    await app.close();
    const untouched = await createApplication(form, adapter, { controllers: [RootController] });
    await untouched.app.close();
  });

  it('answers again and again when applications follow one another in one process', async () => {
    for (const form of [...forms, ...forms]) {
      const { ask, close } = await startApplication(form, adapter, { controllers: [RootController] });
      expect((await ask('/hello/again')).text).toBe('hello again');
      await close();
    }
  });

  it('needs no controller', async () => {
    for (const form of forms) {
      const { ask, close } = await startApplication(form, adapter, {});
      expect((await ask('/')).status).toBe(404);
      await close();
    }
  });
});
