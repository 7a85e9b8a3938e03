import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as connectHttp2, constants as http2, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Controller, Get, Res } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RequestRecord } from '../../src/index.js';
import { adapterOf, adapters, startApp, type TestApp } from '../fixtures/app.js';
import { MatrixController } from '../fixtures/matrix.controller.js';
import { RawClient } from '../fixtures/socket.js';

/** What one case must leave behind: exactly these records, in order of their ends. */
interface Expected {
  method?: string;
  route: string;
  handler?: string | null;
  status: number;
  outcome?: 'completed' | 'aborted';
  atLeastMs?: number;
}
interface Case {
  name: string;
  only?: 'fastify' | 'express';
  run: (app: TestApp) => Promise<void>;
  expected: (adapter: string) => Expected[];
}

const handlerOf = (route: string): string | null => {
  const name = route.split('/')[2];
  return route.startsWith('/m/') && name !== undefined
    ? `MatrixController.${name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())}`
    : null;
};
const one =
  (route: string, status: number, rest: Partial<Expected> = {}) =>
  () => [{ route, status, ...rest }];
const fetchText = async (url: string, init?: RequestInit): Promise<void> => {
  await (await fetch(url, init)).text();
};
const post = (body: string): RequestInit => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body });
const opened = async ({ port }: TestApp, path: string): Promise<RawClient> => {
  const client = await RawClient.open(port);
  client.get(path);
  return client;
};

const cases: Case[] = [
  {
    name: '200 with a route parameter',
    run: ({ url }) => fetchText(`${url}/m/json/7?q=1`),
    expected: one('/m/json/:id', 200),
  },
  {
    name: 'HEAD',
    run: ({ url }) => fetchText(`${url}/m/json/7`, { method: 'HEAD' }),
    expected: one('/m/json/:id', 200, { method: 'HEAD' }),
  },
  { name: 'a handler that throws', run: ({ url }) => fetchText(`${url}/m/throws`), expected: one('/m/throws', 500) },
  {
    name: 'an HttpException',
    run: ({ url }) => fetchText(`${url}/m/http-exception`),
    expected: one('/m/http-exception', 410),
  },
  { name: 'a guard that rejects', run: ({ url }) => fetchText(`${url}/m/guarded`), expected: one('/m/guarded', 403) },
  {
    name: 'a filter that changes the status',
    run: ({ url }) => fetchText(`${url}/m/filtered`),
    expected: one('/m/filtered', 418),
  },
  { name: 'no route', run: ({ url }) => fetchText(`${url}/nothing/here`), expected: one('', 404) },
  {
    name: '@Res() answered later',
    run: ({ url }) => fetchText(`${url}/m/manual`),
    expected: one('/m/manual', 202, { atLeastMs: 55 }),
  },
  {
    name: 'a stream',
    run: ({ url }) => fetchText(`${url}/m/stream`),
    expected: one('/m/stream', 200, { atLeastMs: 75 }),
  },
  {
    name: 'a stream whose reader leaves',
    run: async (app) => {
      const client = await opened(app, '/m/endless');
      await client.until('chunk', 6);
      client.leave();
    },
    expected: one('/m/endless', 200, { outcome: 'aborted', atLeastMs: 20 }),
  },
  {
    name: 'a client that leaves while the handler runs',
    run: async (app) => {
      const reached = MatrixController.reading('left');
      const client = await opened(app, '/m/left');
      await reached;
      client.leave();
    },
    expected: one('/m/left', 499, { outcome: 'aborted' }),
  },
  {
    name: 'a client that leaves while it sends its body',
    run: async ({ port, app }) => {
      const started = new Promise((resolve) => app.getHttpServer().once('request', resolve));
      const client = await RawClient.open(port);
      client.send(
        'POST /m/body HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a":',
      );
      await started;
      client.leave();
    },
    // Express reads the body before it looks for a route; its parser answers 400, into the closed socket.
    expected: (adapter) => [
      { method: 'POST', route: adapter === 'fastify' ? '/m/body' : '', status: 499, outcome: 'aborted' },
    ],
  },
  {
    name: 'a client that leaves after the last byte',
    run: async (app) => {
      const client = await opened(app, '/m/json/1');
      await client.until('{"id":"1"}');
      client.leave();
    },
    expected: one('/m/json/:id', 200),
  },
  {
    name: 'a client that reads 8 MB late',
    run: async ({ port, app }) => {
      const started = new Promise((resolve) => app.getHttpServer().once('request', resolve));
      const client = await RawClient.open(port);
      client.socket.pause();
      client.get('/m/big', 'Connection: close\r\n');
      await started;
      setTimeout(() => client.socket.resume(), 100);
      await new Promise((resolve) => client.socket.once('close', resolve));
      expect(client.received.length).toBeGreaterThan(8_000_000);
    },
    expected: one('/m/big', 200, { atLeastMs: 90 }),
  },
  {
    name: 'SSE until the client leaves',
    run: async (app) => {
      const client = await opened(app, '/m/events');
      await client.until('event 3');
      client.leave();
    },
    expected: one('/m/events', 200, { outcome: 'aborted', atLeastMs: 35 }),
  },
  {
    name: 'two requests on one connection',
    run: async ({ port }) => {
      const client = await RawClient.open(port);
      client.get('/m/json/1');
      await client.until('{"id":"1"}');
      client.get('/m/json/2');
      await client.until('{"id":"2"}');
      client.leave();
    },
    expected: () => [
      { route: '/m/json/:id', status: 200 },
      { route: '/m/json/:id', status: 200 },
    ],
  },
  {
    name: 'a pipelined fast request behind a slow one',
    run: async ({ port }) => {
      const client = await RawClient.open(port);
      client.send('GET /m/slow HTTP/1.1\r\nHost: t\r\n\r\nGET /m/json/2 HTTP/1.1\r\nHost: t\r\n\r\n');
      await client.until('{"id":"2"}');
      client.leave();
    },
    expected: () => [
      { route: '/m/slow', status: 200, atLeastMs: 95 },
      { route: '/m/json/:id', status: 200, atLeastMs: 90 },
    ],
  },
  {
    name: 'a client that leaves with two requests unanswered',
    run: async ({ port }) => {
      const client = await RawClient.open(port);
      for (let sent = 0; sent < 2; sent++) {
        const reached = once(MatrixController.reached, 'left');
        client.get('/m/left');
        await reached;
      }
      client.leave();
    },
    expected: () => [
      { route: '/m/left', status: 499, outcome: 'aborted' },
      { route: '/m/left', status: 499, outcome: 'aborted' },
    ],
  },
  {
    name: 'malformed JSON',
    run: ({ url }) => fetchText(`${url}/m/body`, post('{"a":')),
    expected: (adapter) => [{ method: 'POST', route: adapter === 'fastify' ? '/m/body' : '', status: 400 }],
  },
  {
    name: 'a body that is too large',
    run: ({ url }) => fetchText(`${url}/m/body`, post(JSON.stringify('x'.repeat(2_000_000)))),
    expected: (adapter) => [{ method: 'POST', route: adapter === 'fastify' ? '/m/body' : '', status: 413 }],
  },
  {
    name: 'an answer by a middleware of main.ts',
    run: ({ url }) => fetchText(`${url}/from-main`),
    expected: one('', 203),
  },
  {
    name: 'hijack',
    only: 'fastify',
    run: ({ url }) => fetchText(`${url}/m/hijack`),
    expected: one('/m/hijack', 200, { atLeastMs: 25 }),
  },
  {
    name: 'inject()',
    only: 'fastify',
    run: async ({ app }) => {
      const { inject } = app as unknown as { inject: (request: object) => Promise<{ statusCode: number }> };
      expect((await inject.call(app, { method: 'GET', url: '/m/json/9' })).statusCode).toBe(200);
    },
    expected: one('/m/json/:id', 200),
  },
];

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

/** Waits until so many requests have ended (a client that has left cannot tell), then for the sinks. */
async function recordsOf(running: TestApp, count: number): Promise<RequestRecord[]> {
  for (;;) {
    const records = await running.requests();
    if (records.length >= count) return records;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function expectRecords(records: RequestRecord[], wanted: Expected[], elapsedMs: number): void {
  const { length } = wanted;
  expect(records).toHaveLength(length);
  wanted.forEach((want, index) => {
    const record = records[index]!;
    const { method = 'GET', status } = want;
    const handler = want.handler === undefined ? handlerOf(want.route) : want.handler;
    const outcome = want.outcome ?? 'completed';
    expect(record).toMatchObject({ kind: 'request', method, route: want.route, handler, status, outcome });
    expect(record.durationMs).toBeGreaterThanOrEqual(want.atLeastMs ?? 0);
    expect(record.durationMs).toBeLessThanOrEqual(elapsedMs);
    expect(new Set(records.map(({ id }) => id)).size).toBe(length);
  });
}
