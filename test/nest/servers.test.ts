import { createServer, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { Controller, Get, Inject, Injectable, Req } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { defer, NoCompression, PerfService, type PerfModuleOptions } from '../../src/index.js';
import { adapterOf } from '../fixtures/app.js';
import {
  type BuiltApp,
  buildApp,
  closeApps,
  closeServer,
  listeningApp,
  ownServer,
  recordsOf,
} from '../fixtures/build-app.js';
import { callAccepting } from '../fixtures/http-client.js';
import { RawClient } from '../fixtures/socket.js';
import { until } from '../fixtures/until.js';

const TEXT = 'compressible '.repeat(2_000);
const ran: string[] = [];
let inHandler = 0;

@Injectable()
class Rows {
  constructor(@Inject(PerfService) private readonly perf: PerfService) {}
  async load(): Promise<number> {
    await turn();
    this.perf.note({ rows: 3 });
    defer(() => void ran.push('deferred'));
    return 3;
  }
}

@Controller('a')
class AController {
  constructor(@Inject(Rows) private readonly rows: Rows) {}
  @Get('text')
  text() {
    return { text: TEXT };
  }
  @Get('plain')
  @NoCompression()
  plain() {
    return { text: TEXT };
  }
  @Get('rows')
  load() {
    return this.rows.load();
  }
  @Get('waits')
  async waits(@Req() { raw, socket }: { raw?: { socket: Socket }; socket: Socket }) {
    inHandler += 1;
    await once(raw?.socket ?? socket, 'close');
    return 'nobody reads it';
  }
}
const ofA = { controllers: [AController], providers: [Rows] };
type Listener = Parameters<typeof createServer>[1] & {};
const listenerOf = (adapter: AbstractHttpAdapter): Listener => adapter.getInstance<Listener>();

let servers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of servers) await close();
  servers = [];
  await closeApps();
});
async function served(listener: Listener) {
  const own = await ownServer(listener);
  servers.push(() => closeServer(own.server));
  return own;
}
const inFlightOf = (app: { get: (token: typeof PerfService) => PerfService }): number =>
  app
    .get(PerfService)
    .snapshot()
    .routes.reduce((sum, { inFlight }) => sum + inFlight, 0);

/** As agents and servers for tests have it: a class of their own for responses. */
class OwnResponse extends ServerResponse {
  override detachSocket(socket: Socket): void {
    super.detachSocket(socket);
  }
}

/** Each way to have a server. */
const ways: [name: string, start: (perf?: PerfModuleOptions) => Promise<BuiltApp & { url: string; port: number }>][] = [
  [
    'Express behind `http.createServer(instance)`',
    async (perf = {}) => {
      const adapter = new ExpressAdapter();
      const built = await buildApp(adapter, { metadata: ofA, perf });
      return { ...built, ...(await served(listenerOf(adapter))) };
    },
  ],
  [
    'Fastify with a `serverFactory`',
    (perf = {}) => {
      const adapter: unknown = new FastifyAdapter({ serverFactory: (handler: Listener) => createServer(handler) });
      return listeningApp(adapter as AbstractHttpAdapter, { metadata: ofA, perf });
    },
  ],
  [
    'Fastify with a `serverFactory` and a class of responses',
    (perf = {}) => {
      const serverFactory = (handler: Listener) => createServer({ ServerResponse: OwnResponse }, handler);
      const adapter: unknown = new FastifyAdapter({ serverFactory });
      return listeningApp(adapter as AbstractHttpAdapter, { metadata: ofA, perf });
    },
  ],
  ['Express by itself', (perf = {}) => listeningApp(adapterOf('express'), { metadata: ofA, perf })],
  ['Fastify by itself', (perf = {}) => listeningApp(adapterOf('fastify'), { metadata: ofA, perf })],
  [
    'Fastify behind a server that calls `routing()`',
    async (perf = {}) => {
      const adapter = new FastifyAdapter() as unknown as AbstractHttpAdapter;
      const built = await buildApp(adapter, { metadata: ofA, perf });
      const fastify = adapter.getInstance<{ ready: () => Promise<void>; routing: Listener }>();
      await fastify.ready();
      return { ...built, ...(await served(fastify.routing)) };
    },
  ],
];

describe.each(ways)('%s', (_name, start) => {
  it('measures each request once, with its route', async () => {
    const built = await start();
    for (const path of ['/a/text', '/a/plain', '/nowhere']) await (await fetch(built.url + path)).text();
    const records = await recordsOf(built, 3);
    expect(records.map(({ route, handler, status }) => [route, handler, status])).toEqual([
      ['/a/text', 'AController.text', 200],
      ['/a/plain', 'AController.plain', 200],
      ['', null, 404],
    ]);
  });

  it('compresses, but not what is decorated with `@NoCompression()`', async () => {
    const { url } = await start();
    expect((await callAccepting(`${url}/a/text`, 'gzip')).headers['content-encoding']).toBe('gzip');
    expect((await callAccepting(`${url}/a/plain`, 'gzip')).headers['content-encoding']).toBeUndefined();
  });

  it('knows the current request: `note()` and `defer()`', async () => {
    const built = await start({});
    ran.length = 0;
    expect((await fetch(`${built.url}/a/rows`)).status).toBe(200);
    expect(await recordsOf(built, 1)).toMatchObject([{ route: '/a/rows', note: { rows: 3 } }]);
    await until('the deferred work', () => ran.length === 1, 2_000);
  });

  it('records pipelined requests of a client that leaves: each once, aborted, none in flight', async () => {
    const built = await start();
    const client = await RawClient.open(built.port);
    inHandler = 0;
    for (let i = 0; i < 3; i++) client.get('/a/waits');
    await until('the first handler', () => inHandler > 0, 3_000);
    await until('all handlers that will run', async () => {
      const before = inHandler;
      await turn();
      return before === inHandler;
    });
    client.leave();
    const records = await recordsOf(built, inHandler);
    expect(records.map(({ route, status, outcome }) => `${route} ${status} ${outcome}`)).toEqual(
      Array.from({ length: inHandler }, () => '/a/waits 499 aborted'),
    );
    expect(inFlightOf(built.app)).toBe(0);
  });
});

it('two servers of one Express application, as for HTTP and HTTPS: each request once', async () => {
  const adapter = new ExpressAdapter();
  const built = await buildApp(adapter, { metadata: ofA });
  const urls = [(await served(listenerOf(adapter))).url, (await served(listenerOf(adapter))).url];
  for (const url of urls) await (await fetch(`${url}/a/plain`)).text();
  expect((await recordsOf(built, 2)).map(({ route, status }) => [route, status])).toEqual([
    ['/a/plain', 200],
    ['/a/plain', 200],
  ]);
});
