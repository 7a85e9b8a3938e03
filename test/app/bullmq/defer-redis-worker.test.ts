import { EventEmitter, once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Redis } from 'ioredis';
import { freePort } from '../../../scripts/redis.mjs';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import type { DurableStore, NewDurableJob } from '../../../src/index.js';
import type { RedisConnection } from '../../../src/entries/bullmq/connection.js';
import { jobNamed } from '../../unit/contract/durable-store.contract.js';
import { adminOf, ownRedis } from '../../fixtures/redis.js';
import { startProxy } from '../../fixtures/redis-proxy.js';
import { until } from '../../fixtures/until.js';
import { NO_WORKER } from '../../unit/defer/durable-entry.js';

const LONG = process.env['PERF_LONG'] !== undefined;

async function startStore(
  connection: RedisConnection,
  worker: boolean,
  ending: (id: string) => Promise<void> = async () => {},
) {
  const [ran, reports]: [string[], string[]] = [[], []];
  const store = bullmqStore({ connection, queue: 'worker', worker });
  await store.start({
    ...NO_WORKER,
    run: async (jobs) => {
      const { id } = jobs[0]!;
      ran.push(id);
      await ending(id);
    },
    report: (_, message) => reports.push(message),
  });
  store.startWorker?.();
  onTestFinished(async () => {
    await store.stopWorker(1_000);
    await store.close();
  });
  return { store, ran, reports };
}

const stored = (store: DurableStore, job: NewDurableJob): Promise<boolean> =>
  store.add([job], { batch: false }).then(
    () => true,
    () => false,
  );

/** Stores jobs from another process, so to speak. */
async function startProducer(port: number) {
  const { store } = await startStore({ host: '127.0.0.1', port }, false);
  return async (id: string, delayMs = 0): Promise<void> => {
    const job = jobNamed(id);
    const options = { ...job.options, delayMs };
    await until(`${id} to be stored`, () => stored(store, { ...job, options }));
  };
}

describe('a worker with ACLs', () => {
  const userWith = async (admin: Redis, port: number, ...rules: string[]) => {
    await admin.call('ACL', 'SETUSER', 'app', 'on', '>word', '~*', '&*', '+@all', ...rules);
    return { host: '127.0.0.1', port, username: 'app', password: 'word' };
  };

  it('works without INFO, and the process goes on', async () => {
    // ioredis has a word to say of it, too.
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    onTestFinished(() => void vi.restoreAllMocks());
    const { port } = await ownRedis();
    const admin = adminOf({ port });
    const add = await startProducer(port);
    const { ran } = await startStore(await userWith(admin, port, '-info'), true);
    await add('first');
    await add('later', 50);
    await until('both to run', () => ran.length === 2);
  });

  it.each([['-evalsha', '-eval'], ['-bzpopmin']])(
    'under %s asks again after a while, and works once it may',
    async (...rules) => {
      const { port } = await ownRedis();
      const admin = adminOf({ port });
      const add = await startProducer(port);
      const { ran, reports } = await startStore(await userWith(admin, port, ...rules), true);
      await add('first');
      await until('the refusal to be told', () => reports.some((text) => text.includes('NOPERM')));
      await admin.config('RESETSTAT');
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      const refused = [...(await admin.info('commandstats')).matchAll(/rejected_calls=(\d+)/g)];
      // A loop without a wait would have asked thousands of times.
      expect(refused.reduce((sum, [, calls]) => sum + Number(calls), 0)).toBeLessThan(20);
      await admin.call('ACL', 'SETUSER', 'app', '+@all');
      await until('the job to run', () => ran.length === 1);
    },
  );
});

it('a worker that is refused for want of memory goes on once there is some, also beside a job that still runs', async () => {
  const { port } = await ownRedis();
  const admin = adminOf({ port });
  const add = await startProducer(port);
  const ends = new EventEmitter();
  onTestFinished(() => void ends.emit('long'));
  const ending = async (id: string): Promise<void> => void (id === 'next' || (await once(ends, id)));
  const { ran, reports } = await startStore({ host: '127.0.0.1', port }, true, ending);
  await add('long');
  await add('short');
  await until('both to run', () => ran.length === 2);
  await admin.config('SET', 'maxmemory', '1');
  ends.emit('short');
  await until('the refusal to be told', () => reports.some((text) => text.includes('OOM')));
  await admin.config('RESETSTAT');
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  const [, refusals = '0'] = /errorstat_OOM:count=(\d+)/.exec(await admin.info('errorstats')) ?? [];
  expect(Number(refusals)).toBeLessThan(20);
  await admin.config('SET', 'maxmemory', '0');
  await add('next');
  await until('the next to run', () => ran.includes('next'));
  expect(ran.filter((id) => id === 'long')).toEqual(['long']);
});

it.runIf(LONG)('a worker whose connections are half open makes new ones', { timeout: 90_000 }, async () => {
  const { port } = await ownRedis();
  const add = await startProducer(port);
  const proxy = await startProxy(port);
  onTestFinished(proxy.close);
  const { ran } = await startStore({ host: '127.0.0.1', port: proxy.port }, true);
  await add('before');
  await until('the first to run', () => ran.length === 1);
  proxy.hold();
  await add('after');
  await until('the second to run', () => ran.length === 2, 60_000);
});

it.runIf(LONG).each(['options', 'a client'])(
  'a worker of %s whose connections are half open before the first answer makes new ones, at boot and after an outage',
  { timeout: 120_000 },
  async (kind) => {
    const { port } = await ownRedis();
    const admin = adminOf({ port });
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    onTestFinished(() => void silent.close());
    await once(silent, 'listening');
    const silentPort = (silent.address() as AddressInfo).port;
    const add = await startProducer(port);
    const proxy = await startProxy(silentPort);
    onTestFinished(proxy.close);
    const options = { host: '127.0.0.1', port: proxy.port };
    const { ran } = await startStore(
      kind === 'a client' ? new Redis({ ...options, lazyConnect: true }) : options,
      true,
    );
    await until('three connections', () => proxy.connections() === 3);
    proxy.leadTo(port);
    await add('at boot');
    await until('the first to run', () => ran.length === 1, 40_000);
    proxy.leadTo(silentPort);
    const before = proxy.connections();
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await until('three more', () => proxy.connections() === before + 3);
    proxy.leadTo(port);
    await add('later');
    await until('the second to run', () => ran.length === 2, 40_000);
  },
);

it.each(['options', 'a client'])('a worker waits longer for a job than commands of %s may take', async (kind) => {
  const { port } = await ownRedis();
  const add = await startProducer(port);
  const options = { host: '127.0.0.1', port, commandTimeout: 200 };
  const client = kind === 'a client' ? new Redis({ ...options, lazyConnect: true }) : null;
  const { ran, reports } = await startStore(client ?? options, true);
  await add('first');
  await until('the first to run', () => ran.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await add('second');
  await until('the second to run', () => ran.length === 2);
  // The producer's commands have that limit, which a busy machine may exceed.
  expect(reports.filter((text) => text.startsWith('worker'))).toEqual([]);
});

it.each(['options', 'a client'])('with Redis away at boot, %s may say lazyConnect', async (kind) => {
  const port = await freePort();
  const options = { host: '127.0.0.1', port, lazyConnect: true };
  const { ran, reports } = await startStore(kind === 'a client' ? new Redis(options) : options, true);
  await until('the outage to be told', () => reports.length > 0);
  await ownRedis({ port });
  const add = await startProducer(port);
  await add('first');
  await until('the first to run', () => ran.length === 1);
});

it.each([
  ['options', null],
  ['a client', undefined],
])('a retryStrategy of %s that gives up ends the connection of neither producer nor worker', async (kind, gaveUp) => {
  const port = await freePort();
  const options = { host: '127.0.0.1', port, lazyConnect: true, retryStrategy: () => gaveUp as null };
  const { store, ran, reports } = await startStore(kind === 'a client' ? new Redis(options) : options, true);
  await until('both to tell of the outage', () => new Set(reports.map((text) => text.split(' ')[0])).size === 2);
  await ownRedis({ port });
  await until('the first to be stored', () => stored(store, jobNamed('first')));
  await until('the first to run', () => ran.length === 1);
  expect(reports.filter((text) => text.includes('closed'))).toEqual([]);
});

it('once a worker has stopped no timer holds up the end of the process', async () => {
  const { port } = await ownRedis();
  // Timers of what went before end.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const { store, ran } = await startStore({ host: '127.0.0.1', port }, true);
  await until('the first to be stored', () => stored(store, jobNamed('first')));
  await until('the first to run', () => ran.length === 1);
  // The worker waits for the next.
  await new Promise((resolve) => setTimeout(resolve, 200));
  await store.stopWorker(1_000);
  await store.close();
  await until('its timers to end', () => timers() <= before, 5_000);
});

it('a job that ends while Redis hangs does not hang the process once the application has closed', async () => {
  const redis = await ownRedis();
  const add = await startProducer(redis.port);
  const ends = new EventEmitter();
  const { store, ran } = await startStore({ host: '127.0.0.1', port: redis.port }, true, async () => {
    await once(ends, 'end');
  });
  await add('first');
  await until('it to run', () => ran.length === 1);
  redis.child?.kill('SIGSTOP');
  onTestFinished(() => void redis.child?.kill('SIGCONT'));
  ends.emit('end');
  await store.stopWorker(300);
  await store.close();
  // ioredis waits 2 s for the server's goodbye. A loop of microtasks would not let this end.
  await new Promise((resolve) => setTimeout(resolve, 2_500));
});

it('with all Sentinels away nobody is asked any more once the application has closed', async () => {
  let asked = 0;
  const sentinel = createServer((socket) => {
    asked += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void sentinel.close());
  await once(sentinel, 'listening');
  const { port } = sentinel.address() as AddressInfo;
  const sentinels = { sentinels: [{ host: '127.0.0.1', port }], name: 'main', sentinelRetryStrategy: () => 10 };
  const { store } = await startStore(sentinels, true);
  await until('several attempts', () => asked > 10);
  await store.stopWorker(100);
  await store.close();
  const before = asked;
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  // Each of three connections may have been about to ask.
  expect(asked - before).toBeLessThan(10);
});
