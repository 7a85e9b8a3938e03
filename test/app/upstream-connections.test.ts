import { once } from 'node:events';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AsyncLocalStorage } from 'node:async_hooks';
import * as otel from '@opentelemetry/api';
import { suppressTracing } from '@opentelemetry/core';
import { Queue } from 'bullmq';
import { afterEach, expect, inject, it, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { PerfService } from '../../src/index.js';
import { adapterOf } from '../fixtures/app.js';
import { undici } from '../fixtures/clients.js';
import { buildApp, closeApps } from '../fixtures/build-app.js';

afterEach(closeApps);

/** The part of a context manager that the SDK's own has. */
class StoredContext implements otel.ContextManager {
  private readonly store = new AsyncLocalStorage<otel.Context>();
  active = () => this.store.getStore() ?? otel.ROOT_CONTEXT;
  with: otel.ContextManager['with'] = (context, work, thisArg, ...args) =>
    this.store.run(context, () => work.apply(thisArg, args));
  bind: otel.ContextManager['bind'] = (_context, target) => target;
  enable = () => this;
  disable = () => this;
}

/** As ioredis tells of a command. */
const tell = (command: string, args: unknown[], error?: Error): Promise<unknown> =>
  tracingChannel('ioredis:command')
    .tracePromise(() => (error === undefined ? Promise.resolve('OK') : Promise.reject(error)), {
      command,
      args,
      serverAddress: 'cache',
      serverPort: 6379,
    })
    .catch(() => {});

it('does not count it as a failed call that Redis before 7.2 does not know how a client introduces itself', async () => {
  const { app } = await buildApp(adapterOf('express'));
  const unknown = new Error("ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.");
  await tell('client', ['SETINFO', 'LIB-NAME', 'ioredis'], unknown);
  await tell('client', ['SETINFO', 'LIB-VER', '6.0.0'], unknown);
  await tell('get', ['price']);
  await tell('get', ['price'], new Error('ERR'));
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'redis cache:6379', calls: 2, errors: 1 }]);
});

/** A queue's worker and its listener do so all day, and looked like a Redis that takes ten seconds. */
it('counts no call for a worker that waits until there is something to do', async () => {
  const { app } = await buildApp(adapterOf('express'));
  await tell('bzpopmin', ['bull:mail:marker', '5']);
  await tell('BLMOVE', ['todo', 'doing', 'RIGHT', 'LEFT', '0']);
  await tell('xread', ['BLOCK', '10000', 'STREAMS', 'bull:mail:events', '$']);
  await tell('xreadgroup', ['GROUP', 'g', 'me', 'COUNT', '10', 'block', '0', 'STREAMS', 'orders', '>']);
  await tell('xread', ['COUNT', '10', 'STREAMS', 'orders', '0']);
  await tell('bitcount', ['seen']);
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'redis cache:6379', calls: 2, inFlight: 0 }]);
});

it('counts no call for what never ends for undici: a WebSocket, an upgrade, and the tunnel of a proxy', async () => {
  const { app } = await buildApp(adapterOf('express'));
  const request = { origin: 'http://feed:3000', method: 'GET', path: '/', headers: ['accept', '*/*'] };
  // Node 24 publishes `create`, and nothing more.
  for (const part of [
    { headers: ['sec-websocket-key', 'x'] },
    { upgrade: 'chat' },
    { method: 'CONNECT', path: 'api:443' },
  ])
    channel('undici:request:create').publish({ request: { ...request, ...part } });
  channel('undici:request:create').publish({ request });
  channel('undici:request:headers').publish({ request, response: { statusCode: 200 } });
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'http feed:3000', calls: 1, inFlight: 0 }]);
});

it.each([
  ['of undici, which is the global one of Node 22', (url: string) => new undici.WebSocket(url)],
  ['over node:http', (url: string) => new WebSocket(url) as never],
])('counts no call for a WebSocket %s', async (_, connect) => {
  const { app } = await buildApp(adapterOf('express'));
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const socket = connect(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await once(socket, 'open');
  expect(app.get(PerfService).snapshot().upstream).toEqual([]);
  socket.close();
  await once(socket, 'close');
  server.close();
});

it('knows the commands of BullMQ by the keys of its queues', async () => {
  const { app } = await buildApp(adapterOf('express'));
  const { hostname: host, port } = new URL(inject('redisUrl'));
  const queue = new Queue('mail', { connection: { host, port: Number(port) } });
  await queue.add('welcome', {});
  await queue.obliterate();
  await queue.close();
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows.find(({ target }) => target === `bullmq ${host}:${port}`)?.calls).toBeGreaterThanOrEqual(2);
});

it('takes keys of the application for no queue of BullMQ', async () => {
  const { app } = await buildApp(adapterOf('express'));
  await tell('get', ['user:42:meta']);
  await tell('incr', ['shop:orders:id']);
  await tell('hset', ['user:42:meta', 'name', '?']);
  await tell('evalsha', ['3f', '2', 'room:7:active', 'user:42:meta', '1']);
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'redis cache:6379', calls: 4 }]);
});

it('leaves out exporters by the addresses that the environment gives them, and nothing that has a path like theirs', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'https://api.acme.com/otlp/');
  vi.stubEnv('OTEL_EXPORTER_OTLP_LOGS_ENDPOINT', 'http://collector:4318/v1/logs');
  vi.stubEnv('SENTRY_DSN', 'https://key@o1.ingest.sentry.io/42');
  vi.stubEnv('DD_AGENT_HOST', 'agent');
  const { app } = await buildApp(adapterOf('express'));
  vi.unstubAllEnvs();
  const call = (origin: string, path: string): void => {
    const request = { origin, method: 'POST', path };
    channel('undici:request:create').publish({ request });
    channel('undici:request:headers').publish({ request, response: { statusCode: 200 } });
  };
  call('https://api.acme.com', '/otlp/v1/traces');
  call('http://collector:4318', '/v1/logs');
  call('https://o1.ingest.sentry.io', '/api/42/envelope/?sentry_version=7');
  call('http://agent:8126', '/v0.7/config');
  call('https://statsigapi.net', '/v1/rgstr');
  const { upstream } = app.get(PerfService).snapshot();
  expect(upstream).toEqual([]);
  call('https://api.acme.com', '/v1/logs');
  call('https://api.acme.com', '/otlp/v1/tracesets');
  call('https://api.acme.com', '/otlp/orders');
  call('http://orders:4318', '/v1/traces');
  call('https://o1.ingest.sentry.io', '/api/7/issues');
  call('https://o1.ingest.sentry.io', '/api/421/envelope/');
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows.map(({ target, calls }) => `${target} ${calls}`)).toEqual([
    'http api.acme.com 3',
    'http orders:4318 1',
    'http o1.ingest.sentry.io 2',
  ]);
});

it('an endpoint without a path leaves out the paths of OTLP alone: a gateway serves other things too', async () => {
  vi.stubEnv('OTEL_EXPORTER_OTLP_ENDPOINT', 'http://gateway:4318');
  const { app } = await buildApp(adapterOf('express'));
  vi.unstubAllEnvs();
  for (const path of ['/v1/traces', '/v1/metrics', '/v1/logs', '/orders', '/'])
    channel('undici:request:create').publish({ request: { origin: 'http://gateway:4318', method: 'POST', path } });
  expect(app.get(PerfService).snapshot().upstream).toMatchObject([{ target: 'http gateway:4318', calls: 2 }]);
});

it("leaves out what the OpenTelemetry SDK's own exporters send, wherever they send it", async () => {
  const { app } = await buildApp(adapterOf('express'));
  const server = createServer((_, response) => response.end());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
  otel.context.setGlobalContextManager(new StoredContext());
  const send = async (): Promise<void> => {
    await (await fetch(url, { method: 'POST' })).text();
    await once(httpRequest(url, { method: 'POST' }).end(), 'response');
  };
  try {
    await otel.context.with(suppressTracing(otel.context.active()), send);
    expect(app.get(PerfService).snapshot().upstream).toEqual([]);
    await send();
    expect(app.get(PerfService).snapshot().upstream).toMatchObject([{ calls: 2, errors: 0 }]);
  } finally {
    otel.context.disable();
    server.close();
    server.closeAllConnections();
  }
});

it('names the server that was asked, whatever Host a client has sent, and counts no tunnel of a proxy', async () => {
  const { app } = await buildApp(adapterOf('express'));
  const server = createServer((_, response) => response.end());
  server.on('connect', (_, socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const asked = httpRequest({ host: '127.0.0.1', port, headers: { host: 'public.example' }, agent: false });
  asked.once('response', (response) => response.resume());
  asked.end();
  await once(asked, 'close');
  const tunnel = httpRequest({ host: '127.0.0.1', port, method: 'CONNECT', path: 'api.acme.com:443', agent: false });
  tunnel.end();
  await once(tunnel, 'connect');
  server.close();
  server.closeAllConnections();
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'http 127.0.0.1', calls: 1 }]);
});
