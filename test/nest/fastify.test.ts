import { connect } from 'node:http2';
import {
  All,
  Body,
  Controller,
  Get,
  Header,
  Inject,
  Module,
  type NestModule,
  type OnModuleInit,
  Param,
  Post,
  StreamableFile,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { FastifyAdapter, RouteConfig, RouteConstraints } from '@nestjs/platform-fastify';
import { of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapterOf } from '../fixtures/app.js';
import { ask, createApplication, forms, startApplication } from './applications.js';

interface Injected {
  statusCode: number;
  headers: Record<string, unknown>;
  payload: string;
}
/** Fastify is a dependency of Nest's platform, not of this package. */
interface FastifyInstance {
  get(path: string, handler: () => Promise<unknown>): void;
  addHook(
    name: 'onRequest',
    hook: (
      request: { url: string },
      reply: { code(status: number): { send(body: string): unknown } },
      done: () => void,
    ) => void,
  ): void;
}
interface Injectable {
  inject(request: { method?: string; url: string; payload?: unknown; headers?: object }): Promise<Injected>;
}

@Controller('hello')
class HelloController {
  @Get()
  @Header('x-greeting', 'hi')
  hello() {
    return 'Hello world!';
  }
  @Get('stream')
  stream() {
    return of({ hello: 'world' });
  }
  @Get('file')
  file() {
    return new StreamableFile(Buffer.from('a file'));
  }
  @Get('items/:id')
  @RouteConfig({ own: 'configuration' })
  item(@Param('id') id: string) {
    return { id, parameters: arguments.length };
  }
  @Get('constrained')
  @RouteConstraints({ host: 'own.example' })
  constrained() {
    return 'of own.example';
  }
  @Post()
  create(@Body() body: unknown) {
    return { body };
  }
}

const controllers = [HelloController];
const dated = ({ statusCode, headers, payload }: Injected) => {
  const { date: _date, vary: _vary, ...rest } = headers;
  return { statusCode, headers: rest, payload };
};

describe('inject() on fastify', () => {
  const requests = [
    { url: '/hello' },
    { url: '/hello/stream' },
    { url: '/hello/file' },
    { url: '/hello/items/7' },
    { method: 'HEAD', url: '/hello' },
    { method: 'POST', url: '/hello', payload: { a: 1 } },
    { url: '/missing' },
  ];

  it('answers in both forms alike, and each request is recorded once', async () => {
    const answers = [];
    for (const form of forms) {
      const { app, newRecords } = await createApplication(form, 'fastify', { controllers });
      await app.init();
      const ofForm = [];
      for (const request of requests) {
        const answer = dated(await (app as unknown as Injectable).inject(request));
        const records = await newRecords();
        if (records !== null) expect(records).toMatchObject([{ status: answer.statusCode, outcome: 'completed' }]);
        ofForm.push(answer);
      }
      await app.close();
      answers.push(ofForm);
    }
    const [bare, instrumented] = answers;
    expect(instrumented).toEqual(bare);
    expect(bare!.map(({ statusCode, payload }) => [statusCode, payload])).toEqual([
      [200, 'Hello world!'],
      [200, '{"hello":"world"}'],
      [200, 'a file'],
      [200, '{"id":"7","parameters":1}'],
      [200, ''],
      [201, '{"body":{"a":1}}'],
      [404, '{"message":"Cannot GET /missing","error":"Not Found","statusCode":404}'],
    ]);
  });
});

describe('HTTP/2 without TLS on fastify', () => {
  it('answers in both forms alike, and each request is recorded once', async () => {
    const answers = [];
    for (const form of forms) {
      const adapter = () => adapterOf('fastify', { http2: true });
      const { app, url, newRecords } = await startApplication(form, 'fastify', { controllers, adapter });
      const session = connect(url);
      const ofForm = [];
      for (const path of ['/hello', '/hello/stream', '/hello/file', '/hello/items/7', '/missing']) {
        const stream = session.request({ ':path': path });
        const { promise, resolve, reject } = withResolvers<Record<string, unknown>>();
        stream.once('response', resolve).once('error', reject);
        let text = '';
        stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        const ended = new Promise((resolve) => stream.once('close', resolve));
        const { date: _date, vary: _vary, ...headers } = await promise;
        await ended;
        const records = await newRecords();
        if (records !== null) expect(records).toMatchObject([{ status: headers[':status'], outcome: 'completed' }]);
        ofForm.push({ headers, text });
      }
      await new Promise<void>((resolve) => session.close(resolve));
      await app.close();
      answers.push(ofForm);
    }
    const [bare, instrumented] = answers;
    expect(instrumented).toEqual(bare);
    expect(bare!.map(({ headers, text }) => [headers[':status'], text])).toEqual([
      [200, 'Hello world!'],
      [200, '{"hello":"world"}'],
      [200, 'a file'],
      [200, '{"id":"7","parameters":1}'],
      [404, '{"message":"Cannot GET /missing","error":"Not Found","statusCode":404}'],
    ]);
  });
});

function withResolvers<T>() {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
}

describe('routes of fastify', () => {
  it.each(forms)('keep their own configuration and constraints in the %s form', async (form) => {
    const configurations: unknown[] = [];
    const adapter = new FastifyAdapter();
    const { url, close } = await startApplication(form, 'fastify', {
      controllers,
      adapter: () => adapter as never,
      main: () => {
        adapter.getInstance().addHook('onRequest', (request, _reply, done) => {
          configurations.push((request.routeOptions.config as { own?: string }).own);
          done();
        });
      },
    });
    await ask(`${url}/hello/items/7`);
    await ask(`${url}/hello`);
    const constrained = await ask(`${url}/hello/constrained`, { headers: { host: 'own.example' } });
    const elsewhere = await ask(`${url}/hello/constrained`);
    await close();
    expect(configurations.slice(0, 2)).toEqual(['configuration', undefined]);
    expect(constrained).toMatchObject({ status: 200, text: 'of own.example' });
    expect(elsewhere.status).toBe(404);
  });

  it('are known by pattern and handler, whatever refuses the request; those beside Nest have no handler', async () => {
    @Controller()
    class RootController {
      @Get()
      root() {
        return 'root';
      }
      @All('any/*')
      any() {
        return 'any';
      }
      @Post('bodies')
      body(@Body() body: unknown) {
        return body;
      }
      @Get('refused/:id')
      refused() {}
    }
    @Module({})
    class RawModule implements NestModule, OnModuleInit {
      private readonly fastify: FastifyInstance;
      constructor(@Inject(HttpAdapterHost) host: HttpAdapterHost) {
        this.fastify = host.httpAdapter.getInstance();
      }
      configure() {
        this.fastify.addHook('onRequest', (request, reply, done) => {
          if (request.url.startsWith('/api/refused')) reply.code(429).send('later');
          else done();
        });
      }
      onModuleInit() {
        this.fastify.get('/api/raw/:id', async () => 'raw');
      }
    }
    const { app, url, newRecords, close } = await startApplication('instrumented', 'fastify', {
      controllers: [RootController],
      imports: [RawModule],
      main: (app) => app.setGlobalPrefix('api'),
    });
    const asked: [method: string, path: string, body?: string][] = [
      ['GET', '/api'],
      ['HEAD', '/api'],
      ['PUT', '/api/any/1'],
      ['POST', '/api/bodies', '{"a":1}'],
      ['POST', '/api/bodies', '{"a"'],
      ['GET', '/api/refused/7'],
      ['GET', '/api/raw/7'],
      ['GET', '/api/nowhere'],
    ];
    for (const [method, path, body] of asked) {
      await ask(url + path, {
        method,
        ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
      });
    }
    const records = await newRecords();
    const { routes } = app.get(PerfService).snapshot();
    await close();
    expect(records!.map(({ method, route, handler, status }) => [method, route, handler, status])).toEqual([
      ['GET', '/api', 'RootController.root', 200],
      ['HEAD', '/api', 'RootController.root', 200],
      ['PUT', '/api/any/*', 'RootController.any', 200],
      ['POST', '/api/bodies', 'RootController.body', 201],
      ['POST', '/api/bodies', 'RootController.body', 400],
      ['GET', '/api/refused/:id', 'RootController.refused', 429],
      ['GET', '/api/raw/:id', null, 200],
      ['GET', '', null, 404],
    ]);
    // One row a method and route.
    expect(routes.map(({ method, route, count }) => `${method} ${route} ${count}`).toSorted()).toEqual([
      'GET  1',
      'GET /api 1',
      'GET /api/raw/:id 1',
      'GET /api/refused/:id 1',
      'HEAD /api 1',
      'POST /api/bodies 2',
      'PUT /api/any/* 1',
    ]);
  });

  it('are all known in a large application, by requests that fail before their handlers too', async () => {
    const many = Array.from({ length: 250 }, (_, i) => i);
    class LargeController {}
    for (const i of many) {
      const descriptor = { value: () => i, writable: true, enumerable: false, configurable: true };
      Post(`r${i}`)(LargeController.prototype, `r${i}`, descriptor);
      Object.defineProperty(LargeController.prototype, `r${i}`, descriptor);
    }
    Controller('large')(LargeController);
    const running = await startApplication('instrumented', 'fastify', { controllers: [LargeController] });
    for (const i of many) {
      await ask(`${running.url}/large/r${i}`, {
        method: 'POST',
        body: '{',
        headers: { 'content-type': 'application/json' },
      });
    }
    const records = await running.newRecords();
    await running.close();
    expect(records!.map(({ route, handler, status }) => [route, handler, status])).toEqual(
      many.map((i) => [`/large/r${i}`, `LargeController.r${i}`, 400]),
    );
  });
});
