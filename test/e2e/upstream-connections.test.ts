import { once } from 'node:events';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get } from '@nestjs/common';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterEach, expect, inject, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapterOf, startApp } from '../fixtures/app.js';
import { buildApp, closeApps } from '../fixtures/build-app.js';

afterEach(closeApps);

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
  await tell('xread', ['COUNT', '10', 'STREAMS', 'block', '0']);
  await tell('bitcount', ['seen']);
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'redis cache:6379', calls: 2, inFlight: 0 }]);
});

it('counts no call for what never ends for undici: a WebSocket, and the tunnel of a proxy', async () => {
  const { app } = await buildApp(adapterOf('express'));
  const request = { origin: 'http://feed:3000', method: 'GET', path: '/', headers: ['accept', '*/*'] };
  // As Node 24 tells of them: `create`, and nothing more.
  for (const part of [{ headers: ['sec-websocket-key', 'x'] }, { method: 'CONNECT', path: 'api:443' }])
    channel('undici:request:create').publish({ request: { ...request, ...part } });
  channel('undici:request:create').publish({ request });
  channel('undici:request:trailers').publish({ request, trailers: [] });
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'http feed:3000', calls: 1, inFlight: 0 }]);
});

it('ends a call of undici that has become another protocol, of which no channel tells more', async () => {
  const { app } = await buildApp(adapterOf('express'));
  const send = (headers: string): void => {
    const request = { origin: 'http://feed:3000', method: 'GET', path: '/', headers: [] };
    channel('undici:request:create').publish({ request });
    channel('undici:client:sendHeaders').publish({ request, headers });
  };
  send('GET / HTTP/1.1\r\nhost: feed:3000\r\nconnection: upgrade\r\nupgrade: chat\r\n');
  send('GET / HTTP/1.1\r\nhost: feed:3000\r\nconnection: keep-alive\r\n');
  const rows = app.get(PerfService).snapshot().upstream;
  expect(rows).toMatchObject([{ target: 'http feed:3000', calls: 2, errors: 0, inFlight: 1 }]);
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

it('leaves out what is posted to collectors of telemetry, and nothing that has a path like theirs', async () => {
  const { app } = await buildApp(adapterOf('express'));
  const call = (method: string, path: string): void => {
    const request = { origin: 'https://api.acme.com', method, path };
    channel('undici:request:create').publish({ request });
    channel('undici:request:trailers').publish({ request, trailers: [] });
  };
  call('POST', '/v1/traces');
  call('POST', '/otlp/v1/metrics');
  call('POST', '/api/42/envelope/?sentry_version=7');
  call('GET', '/v0.7/config');
  const { upstream } = app.get(PerfService).snapshot();
  expect(upstream).toEqual([]);
  call('GET', '/v1/metrics?from=1');
  call('GET', '/v1/logs');
  expect(app.get(PerfService).snapshot().upstream).toMatchObject([{ target: 'http api.acme.com', calls: 2 }]);
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

it.each([
  ['together', { enableAutoPipelining: true }],
  ['when the connection is there', { lazyConnect: true }],
])('gives no request the commands of others that ioredis sends %s', async (_, options) => {
  const { hostname, port } = new URL(inject('redisUrl'));
  const client = new Redis({ host: hostname, port: Number(port), ...options });
  if (!('lazyConnect' in options)) await client.ping();
  @Controller()
  class PriceController {
    @Get('price')
    async price() {
      await client.get('price');
      await delay(30);
      return {};
    }
  }
  const running = await startApp('fastify', { metadata: { controllers: [PriceController] } });
  const ask = async (): Promise<void> => void (await (await fetch(`${running.url}/price`)).text());
  await Promise.all([ask(), ask(), ask()]);
  // Nobody else is there: it is this one's.
  await ask();
  const records = await running.requests();
  await running.close();
  client.disconnect();
  const callsOf = records.map(({ upstream }) => (upstream ?? []).reduce((sum, { calls }) => sum + calls, 0));
  expect(Math.max(...callsOf)).toBe(1);
  for (const [i, { time }] of records.entries()) expect(callsOf[i]! + time!.unplacedCalls).toBeGreaterThanOrEqual(1);
  expect(callsOf.at(-1)).toBe(1);
});
