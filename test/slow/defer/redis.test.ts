import { Controller, Injectable, Post } from '@nestjs/common';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../../scripts/redis.mjs';
import { Deferrer, DeferWork, DurableWork, type DeferredWork } from '../../../src/index.js';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { startApp, type TestApp } from '../../fixtures/app.js';
import { adminOf } from '../../fixtures/redis.js';
import {
  durableRedis,
  expectEachStoredOnce,
  pause,
  placeOrders,
  Receipt,
  settleSinks,
  startOrders,
  storedIn,
} from '../../fixtures/durable-orders.js';
import { until } from '../../fixtures/until.js';

/** The full proof takes minutes: `npm run test:long`. The short form breaks the same things for a moment. */
const LONG = process.env['PERF_LONG'] !== undefined;
/** How much longer an order may take than a request that defers nothing. One that waited for Redis would take far more. */
const MOST_TIMES = 10;
const collectGarbage = (globalThis as { gc?: () => void }).gc ?? ((): void => {});

let noted = 0;
@Injectable()
@DurableWork()
class Note implements DeferredWork<null> {
  prepare(): null {
    return null;
  }
  run(): void {
    noted += 1;
  }
}

@Controller('notes')
class NotesController {
  @Post()
  @DeferWork(Note, { durable: true })
  create() {
    return {};
  }
}

describe('deferred work while Redis fails', () => {
  const kills = LONG ? 30 : 5;
  it(`${kills} CLIENT KILLs, one every 100 ms: nothing lost, nothing twice`, async () => {
    const redis = await durableRedis();
    const running = await startOrders(redis.port);
    const admin = adminOf(redis);
    const orders = placeOrders(running);
    for (let i = 0; i < kills; i++) {
      await pause(100);
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    }
    await until('enough orders', () => orders.accepted.length > 100);
    await pause(100);
    const accepted = await orders.stop();
    await running.app.get(Deferrer).idle();
    await expectEachStoredOnce(redis.port, accepted);
    expect(running.app.get(Deferrer).stats()).toMatchObject({ dropped: 0, failed: 0, stored: accepted.length * 2 });
  }, 120_000);

  const downMs = LONG ? 3_000 : 300;
  it(`killed for ${downMs} ms with AOF: served throughout, nothing lost, nothing twice`, async () => {
    const redis = await durableRedis();
    // Room for all orders that a fast machine places meanwhile.
    const running = await startOrders(redis.port, { maxPending: 100_000 });
    const orders = placeOrders(running);
    await until('orders before', () => orders.accepted.length > 50);
    await redis.stop({ keepData: true });
    const before = orders.accepted.length;
    orders.timesPlain();
    await pause(downMs);
    await until('orders without Redis', () => orders.accepted.length - before > 50);
    expect(orders.timesPlain()).toBeLessThan(MOST_TIMES);
    await durableRedis({ port: redis.port, dir: redis.dir! });
    await pause(200);
    const accepted = await orders.stop();
    await running.app.get(Deferrer).idle();
    await expectEachStoredOnce(redis.port, accepted);
    expect(running.app.get(Deferrer).stats()).toMatchObject({ dropped: 0, failed: 0 });
  }, 120_000);

  const stallMs = LONG ? 12_000 : 200;
  it(`stalled for ${stallMs} ms: memory stays bounded, what does not fit is counted, the rest arrives`, async () => {
    const redis = await durableRedis();
    const running = await startOrders(redis.port, { maxPending: 5_000 });
    const deferrer = running.app.get(Deferrer);
    const mail = new Queue('mail', { connection: { host: '127.0.0.1', port: redis.port } });
    onTestFinished(() => mail.close());
    await mail.waitUntilReady();
    redis.child?.kill('SIGSTOP');
    collectGarbage();
    const heapBefore = process.memoryUsage().heapUsed;
    const untilMs = performance.now() + stallMs;
    let armed = 0;
    while (performance.now() < untilMs || armed <= 6_000) {
      for (let i = 0; i < 300; i++) deferrer.addJob(mail, 'welcome', { id: `job-${armed++}`, text: 'x'.repeat(200) });
      await pause(10);
    }
    const stalled = deferrer.stats();
    // The sink of the tests keeps a record of each job that was dropped, for ever.
    await settleSinks(running);
    running.sink.records.length = 0;
    collectGarbage();
    const growthMb = (process.memoryUsage().heapUsed - heapBefore) / 1e6;
    redis.child?.kill('SIGCONT');
    expect(stalled).toMatchObject({ accepted: armed, pending: 5_000, buffered: 5_000, dropped: armed - 5_000 });
    expect(growthMb).toBeLessThan(60);
    await deferrer.idle();
    expect(deferrer.stats()).toMatchObject({ stored: 5_000, pending: 0, buffered: 0, failed: 0 });
    expect((await storedIn(redis.port)).mail).toHaveLength(5_000);
  }, 120_000);

  it('absent at boot: the application starts and serves, and delivers when it comes', async () => {
    const port = await freePort();
    const running = await startOrders(port);
    const orders = placeOrders(running);
    await until('orders without Redis', () => orders.accepted.length > 50);
    expect(orders.timesPlain()).toBeLessThan(MOST_TIMES);
    const accepted = await orders.stop();
    const { buffered, dropped } = running.app.get(Deferrer).stats();
    expect({ buffered, dropped }).toEqual({ buffered: accepted.length * 2, dropped: 0 });
    await durableRedis({ port });
    await running.app.get(Deferrer).idle();
    await expectEachStoredOnce(port, accepted);
  }, 120_000);

  it('away for over ten minutes: what addJob() holds is dropped, counted and reported once with its queue; later jobs arrive', async () => {
    const redis = await durableRedis();
    const warnings: string[] = [];
    const running = await startApp('fastify', {
      metadata: { controllers: [] },
      perf: { eventLoop: false, resources: false },
      nest: { logger: { log: () => {}, error: () => {}, warn: (text: string) => warnings.push(text) } },
    });
    onTestFinished(() => running.close());
    const deferrer = running.app.get(Deferrer);
    const connection = { host: '127.0.0.1', port: redis.port, enableOfflineQueue: false, retryStrategy: () => 100 };
    const mail = new Queue('mail', { connection });
    mail.on('error', () => {});
    await mail.waitUntilReady();
    await redis.stop();
    for (let i = 0; i < 3; i++) deferrer.addJob(mail, 'welcome', { id: `early ${i}` });
    await until('jobs to be sent again', () => deferrer.stats().retried > 6);
    expect(deferrer.stats()).toMatchObject({ accepted: 3, buffered: 3, dropped: 0 });
    const clock = performance.now.bind(performance);
    const later = vi.spyOn(performance, 'now').mockImplementation(() => clock() + 601_000);
    onTestFinished(() => later.mockRestore());
    deferrer.addJob(mail, 'welcome', { id: 'late' });
    await until('jobs to be dropped', () => deferrer.stats().dropped > 0);
    expect(deferrer.stats()).toMatchObject({ accepted: 4, buffered: 1, dropped: 3, failed: 0 });
    const why = 'deferred work "mail/welcome" dropped: its queue has not taken it for 10 minutes.';
    expect(warnings.filter((text) => text.includes('dropped'))).toEqual([why]);
    await durableRedis({ port: redis.port });
    await deferrer.idle();
    expect((await mail.getWaiting()).map(({ data }) => (data as { id: string }).id)).toEqual(['late']);
    await mail.close();
  }, 60_000);

  it.each(['options', 'a client'])(
    'away with nothing pending: close() waits for nobody, whether Redis never came or has gone (given %s)',
    async (given) => {
      const port = await freePort();
      const options = { host: '127.0.0.1', port };
      const start = async () => {
        const client = new Redis({ ...options, maxRetriesPerRequest: null });
        client.on('error', () => {});
        onTestFinished(() => client.disconnect());
        const store = bullmqStore({ connection: given === 'options' ? options : client, queue: 'durable' });
        const running = await startApp('fastify', {
          metadata: { controllers: [NotesController], providers: [Note] },
          perf: { defer: { store, drainTimeoutMs: 10_000 } },
        });
        return { running, store };
      };
      const closeMs = async (running: TestApp): Promise<number> => {
        const startedMs = performance.now();
        await running.close();
        return performance.now() - startedMs;
      };
      const never = await start();
      await pause(300);
      expect(await closeMs(never.running)).toBeLessThan(3_000);
      const redis = await durableRedis({ port });
      const gone = await start();
      noted = 0;
      await fetch(`${gone.running.url}/notes`, { method: 'POST' });
      await until('the job has run', () => noted === 1);
      await until('Redis knows of it', async () => (await gone.store.queue().getActiveCount()) === 0);
      await redis.stop();
      await pause(300);
      expect(await closeMs(gone.running)).toBeLessThan(3_000);
    },
    60_000,
  );

  it('absent for good: close() returns at the drain deadline and says what was cut off', async () => {
    const port = await freePort();
    const warnings: string[] = [];
    const connection = { host: '127.0.0.1', port };
    const store = bullmqStore({ connection, queue: 'durable', worker: true });
    const running = await startApp('fastify', {
      metadata: { controllers: [], providers: [Receipt] },
      perf: { defer: { store, drainTimeoutMs: 100 } },
      nest: { logger: { log: () => {}, error: () => {}, warn: (text: string) => warnings.push(text) } },
    });
    const client = new Redis({ ...connection, maxRetriesPerRequest: null });
    onTestFinished(() => client.disconnect());
    const queue = new Queue('mail', { connection: client });
    queue.on('error', () => {});
    const deferrer = running.app.get(Deferrer);
    for (let i = 0; i < 3; i++) deferrer.addJob(queue, 'welcome', { i });
    const startedMs = performance.now();
    await running.close();
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(warnings).toContain(
      'The shutdown has cut off 3 deferred tasks after 100 ms: mail/welcome (3). Raise `defer.drainTimeoutMs`, or make the work durable.',
    );
    expect(deferrer.stats()).toMatchObject({ accepted: 3, dropped: 3, pending: 0 });
  });
});
