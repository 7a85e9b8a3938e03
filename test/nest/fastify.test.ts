import { connect } from 'node:http2';
import { Body, Controller, Get, Header, Param, Post, StreamableFile } from '@nestjs/common';
import { FastifyAdapter, RouteConfig, RouteConstraints } from '@nestjs/platform-fastify';
import { of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { adapterOf } from '../fixtures/app.js';
import { ask, createApplication, forms, startApplication } from './applications.js';

interface Injected {
  statusCode: number;
  headers: Record<string, unknown>;
  payload: string;
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
});
