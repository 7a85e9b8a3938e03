import { channel, tracingChannel } from 'node:diagnostics_channel';
import { Queue } from 'bullmq';
import { afterEach, expect, inject, it } from 'vitest';
import { PerfService } from '../../src/index.js';
import { adapterOf } from '../fixtures/app.js';
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
