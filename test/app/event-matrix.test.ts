import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectHttp2, constants as http2, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Res } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adapterOf, adapters, startApp, type TestApp } from '../fixtures/app.js';
import { cases, expectRecords, recordsOf } from '../fixtures/event-cases.js';
import { MatrixController } from '../fixtures/matrix.controller.js';

describe.each(adapters)('event matrix on %s', (adapter) => {
  let running: TestApp;
  let seen = 0;
  beforeAll(async () => {
    running = await startApp(adapter, {
      metadata: { controllers: [MatrixController] },
      beforeInit: (app) => {
        app.use(({ url }: IncomingMessage, response: ServerResponse, next: () => void) => {
          if (url !== '/from-main') return next();
          response.statusCode = 203;
          response.end('main');
        });
      },
    });
  });
  afterAll(() => running.close());

  it.each(cases.filter(({ only }) => only === undefined || only === adapter))('$name', async ({ run, expected }) => {
    const before = performance.now();
    await run(running);
    const wanted = expected(adapter);
    const records = (await recordsOf(running, seen + wanted.length)).slice(seen);
    seen += records.length;
    expectRecords(records, wanted, performance.now() - before);
  });
});

describe('event matrix on fastify with HTTP/2', () => {
  it.each([
    {
      name: 'a request',
      leave: false,
      expected: { route: '/m/json/:id', handler: 'MatrixController.json', status: 200 },
    },
    {
      name: 'a stream that the client cancels',
      leave: true,
      expected: { route: '/m/endless', status: 200, outcome: 'aborted' as const },
    },
  ])('$name', async ({ leave, expected }) => {
    const running = await startApp('fastify', {
      metadata: { controllers: [MatrixController] },
      adapter: adapterOf('fastify', { http2: true }),
    });
    const { port } = running.app.getHttpServer().address() as AddressInfo;
    const session = connectHttp2(`http://127.0.0.1:${port}`);
    const stream = session.request({ ':path': leave ? '/m/endless' : '/m/json/2' });
    stream.setEncoding('utf8');
    await new Promise((resolve) => stream.once('data', resolve));
    if (leave) stream.close(http2.NGHTTP2_CANCEL);
    else stream.resume();
    await new Promise((resolve) => stream.once('close', resolve));
    const records = await recordsOf(running, 1);
    session.close();
    await running.close();
    expectRecords(records, [expected], Infinity);
  });
});

it('event matrix on fastify with HTTP/2: each HEAD ends, whose response Node does not close unless it was ended', async () => {
  let reach: () => void = () => {};
  @Controller()
  class UnendedController {
    @Get('flushed')
    flushed(@Res() reply: { hijack(): void; raw: ServerResponse }): void {
      reply.hijack();
      reply.raw.writeHead(202);
      reply.raw.flushHeaders();
    }
    @Get('unanswered')
    unanswered(@Res() reply: { hijack(): void }): void {
      reply.hijack();
      reach();
    }
  }
  const adapter = adapterOf('fastify', { http2: true });
  const running = await startApp('fastify', { metadata: { controllers: [UnendedController] }, adapter });
  const session = connectHttp2(`http://127.0.0.1:${running.port}`);
  const flushed = session.request({ ':path': '/flushed', ':method': 'HEAD' });
  await new Promise((resolve) => flushed.resume().once('close', resolve));
  const reached = new Promise<void>((resolve) => (reach = resolve));
  const unanswered = session.request({ ':path': '/unanswered', ':method': 'HEAD' });
  await reached;
  unanswered.close(http2.NGHTTP2_CANCEL);
  const records = await recordsOf(running, 2);
  session.close();
  await running.close();
  const expected = [
    { method: 'HEAD', route: '/flushed', handler: 'UnendedController.flushed', status: 202 },
    {
      method: 'HEAD',
      route: '/unanswered',
      handler: 'UnendedController.unanswered',
      status: 499,
      outcome: 'aborted' as const,
    },
  ];
  expectRecords(records, expected, Infinity);
});

it('event matrix on fastify with HTTP/2: an answer through the stream itself has the status that was sent', async () => {
  @Controller()
  class HijackingController {
    @Get('early')
    early(@Res() reply: { hijack(): void; raw: { stream: ServerHttp2Stream } }): void {
      reply.hijack();
      reply.raw.stream.respond({ ':status': 207 });
      reply.raw.stream.end('x');
    }
  }
  const adapter = adapterOf('fastify', { http2: true });
  const running = await startApp('fastify', { metadata: { controllers: [HijackingController] }, adapter });
  const session = connectHttp2(running.url);
  const stream = session.request({ ':path': '/early' });
  stream.resume();
  await new Promise((resolve) => stream.once('close', resolve));
  expect(await recordsOf(running, 1)).toMatchObject([{ route: '/early', status: 207, outcome: 'completed' }]);
  session.close();
  await running.close();
});
