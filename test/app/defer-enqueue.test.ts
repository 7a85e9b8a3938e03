import {
  Controller,
  Get,
  Inject,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleInit,
  Param,
  type Provider,
} from '@nestjs/common';
import { expect, it } from 'vitest';
import { type DeferOptions, Deferrer, PerfService } from '../../src/index.js';
import { bullmqStore, type BullmqStoreOptions } from '../../src/entries/bullmq.js';
import { settle } from '../../src/entries/testing.js';
import { temporaryFolder } from '../fixtures/disk.js';
import { connection, queueName, queueNamed } from '../fixtures/redis.js';
import { spilledIn } from '../fixtures/spilled.js';
import { until } from '../fixtures/until.js';
import { SendReceipt, startDeferring, WorkLog, WriteAudit } from '../fixtures/works.js';

/** Enqueues too early, before anything listens, and after all is closed. */
@Injectable()
class Eager implements OnModuleInit, OnApplicationShutdown {
  enqueued: unknown = null;
  late: unknown = null;
  readonly early: Promise<unknown>;
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {
    this.early = deferrer.enqueue(SendReceipt, { order: 'early' }).catch((error: unknown) => error);
  }
  async onModuleInit(): Promise<void> {
    this.enqueued = await this.deferrer.enqueue(SendReceipt, { order: 'eager' }).catch((error: unknown) => error);
  }
  async onApplicationShutdown(): Promise<void> {
    this.late = await this.deferrer.enqueue(SendReceipt, { order: 'late' }).catch((error: unknown) => error);
  }
}

@Controller()
class OrdersController {
  constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
  @Get('durable/:order')
  durable(@Param('order') order: string) {
    this.deferrer.defer(SendReceipt, { order }, { durable: true });
    return { order };
  }
}

async function start(defer: DeferOptions = {}, more: Provider[] = []) {
  const providers = [WorkLog, SendReceipt, WriteAudit, ...more];
  const running = await startDeferring('fastify', { controllers: [OrdersController], providers }, defer);
  return { ...running, log: running.app.get(WorkLog) };
}
const durable = ({ queue = queueName(), ...more }: Partial<BullmqStoreOptions> = {}): DeferOptions => ({
  store: bullmqStore({ connection, queue, ...more }),
});

it('counts what waits for its next attempt as waiting: a dead downstream does not fill the memory', async () => {
  const app = await start({ maxPending: 5 });
  const fails = (): never => {
    throw new Error('the downstream is dead');
  };
  for (let i = 0; i < 40; i++) {
    app.deferrer.defer(fails, { attempts: 10, backoffMs: 60_000 });
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(app.deferrer.stats().pending).toBeLessThan(15);
  expect(app.deferrer.stats().dropped).toBeGreaterThan(20);
});

it.each([
  [
    'a class that no module provides',
    () => [
      class Other {
        run() {}
      },
      {},
    ],
    'PERF_ERR_DEFER_WORK: "deferrer.defer()" defers to Other',
  ],
  [
    'durable work without a store',
    () => [SendReceipt, {}, { durable: true }],
    'PERF_ERR_STORE: "deferrer.defer()" defers to SendReceipt with `durable: true`, but',
  ],
  [
    'a delay without a store',
    () => [SendReceipt, {}, { delayMs: 5 }],
    'PERF_ERR_OPTION: `deferrer.defer().delayMs` must go with',
  ],
  ['no work at all', () => [7], 'PERF_ERR_OPTION: `deferrer.defer()` takes a function or a class'],
])('says what is wrong with %s', async (_, parameters, message) => {
  const { deferrer } = await start();
  const [work, data, options] = parameters() as [typeof SendReceipt, { order: string }, object];
  expect(() => deferrer.defer(work, data, options)).toThrow(message);
});

it('waits before a batch is tried again, whatever comes meanwhile', async () => {
  const app = await start();
  app.log.failing.add('bad');
  const options = { attempts: 2, backoffMs: 60_000, batch: { maxWaitMs: 1 } };
  app.deferrer.defer(WriteAudit, 'bad', options);
  await until('the first attempt', () => app.log.batches.length === 1);
  for (let i = 0; i < 5; i++) {
    app.deferrer.defer(WriteAudit, `n-${i}`, options);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(app.log.batches).toEqual([['bad']]);
  await app.close();
  expect((app.log.batches.flat() as string[]).toSorted()).toEqual(['bad', 'bad', 'n-0', 'n-1', 'n-2', 'n-3', 'n-4']);
});

it('stores work durably at once from any code, and resolves when Redis has it', async () => {
  const name = queueName();
  const app = await start(durable({ queue: name, worker: false }));
  const { id } = await app.deferrer.enqueue(
    SendReceipt,
    { order: 'o-1' },
    { delayMs: 60_000, priority: 3, name: 'receipt' },
  );
  const queue = queueNamed(name);
  const job = await queue.getJob(id);
  expect(job).toMatchObject({ name: 'receipt', opts: { delay: 60_000, priority: 3 } });
  expect(app.deferrer.stats()).toMatchObject({ accepted: 1, stored: 1 });
});

it.each([true, false])(
  'stores from onModuleInit on, and says so before, and when all is closed (with a spill: %s)',
  async (spill) => {
    const app = await start(durable(spill ? { spillPath: temporaryFolder() } : {}), [Eager]);
    expect(String(await app.app.get(Eager).early)).toContain('Call it in `onModuleInit` or later');
    expect(app.app.get(Eager).enqueued).toMatchObject({ id: expect.any(String) });
    await until('it to run', () => app.log.ran.length === 1);
    await app.close();
    expect(app.app.get(Eager).late).toMatchObject({ code: 'PERF_ERR_STORE' });
  },
);

it('with a spill, is idle only once it is stored, and leaves nothing on disk, also when an id comes twice', async () => {
  const folder = temporaryFolder();
  const app = await start({ ...durable({ worker: false, spillPath: folder }), maxPending: 1 });
  for (let i = 0; i < 4; i++) void app.deferrer.enqueue(SendReceipt, { order: 'o' }, { id: 'daily' });
  app.deferrer.defer(SendReceipt, { order: 'o' }, { durable: true });
  await app.deferrer.idle();
  expect(app.deferrer.stats()).toMatchObject({ accepted: 5, stored: 5, pending: 0 });
  await until('the disk to be empty', () => spilledIn(folder).ids.length === 0);
});

it.each(['drop-new', 'reject'] as const)('a full spill and full memory, overflow %s', async (overflow) => {
  const away = { host: '127.0.0.1', port: 1 };
  const full = durable({ connection: away, worker: false, spillPath: temporaryFolder(), spillMaxBytes: 1 });
  const app = await start({ ...full, maxPending: 1, overflow, drainTimeoutMs: 10 });
  const deferOne = (): void => app.deferrer.defer(SendReceipt, { order: 'o' }, { durable: true });
  deferOne();
  // It takes one entry, whatever its size.
  await until('the disk to be full', () => app.app.get(PerfService).ready().reasons.length > 0);
  if (overflow === 'reject') {
    expect(deferOne).toThrow('PERF_ERR_DEFER_FULL');
    expect(app.deferrer.stats()).toMatchObject({ accepted: 1, failed: 0, pending: 1 });
    return;
  }
  deferOne();
  expect(app.deferrer.stats()).toMatchObject({ accepted: 2, dropped: 1, pending: 1 });
});

it.each(['order-7', '42', 'order:7'])('takes the same id twice for one job: %s', async (id) => {
  const app = await start(durable());
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await app.deferrer.enqueue(SendReceipt, { order: `o-${i}` }, { id })).id);
  await app.deferrer.enqueue(SendReceipt, { order: 'last' });
  await until('the last to run', () => app.log.ran.some(({ data }) => (data as { order: string }).order === 'last'));
  expect(ids).toEqual([id, id, id]);
  expect(app.log.ran.filter((ran) => ran.id === id)).toHaveLength(1);
});

it('says what is wrong when durable work cannot be started', async () => {
  const without = await start();
  await expect(without.deferrer.enqueue(SendReceipt, { order: 'o' })).rejects.toThrow(
    'PERF_ERR_STORE: "deferrer.enqueue()" defers to SendReceipt with `durable: true`, but',
  );
  const app = await start(durable({ worker: false }));
  await expect(app.deferrer.enqueue(SendReceipt, { order: 1n } as never)).rejects.toThrow('PERF_ERR_SERIALIZE');
  await expect(app.deferrer.enqueue((() => {}) as never, {})).rejects.toThrow(
    'PERF_ERR_OPTION: `deferrer.enqueue()` takes a class',
  );
  for (const options of [{ id: '' }, { priority: 2_097_152 }]) {
    await expect(app.deferrer.enqueue(SendReceipt, { order: 'o' }, options)).rejects.toThrow('PERF_ERR_OPTION');
  }
  await app.deferrer.enqueue(SendReceipt, { order: 'o' }, { priority: 2_097_151 });
});

it('stores what a service starts in a request after its response', async () => {
  const app = await start(durable());
  await fetch(`${app.url}/durable/o-1`, { headers: { 'x-request-id': 'r-1' } });
  await until('it to run', () => app.log.ran.length === 1);
  expect(app.log.ran).toMatchObject([{ data: { order: 'o-1' }, requestId: 'r-1' }]);
  await settle(app.app);
  const [record] = app.sink.records.filter(({ kind }) => kind === 'deferred');
  expect(record).toMatchObject({ route: '/durable/:order', durable: true, outcome: 'completed', requestId: 'r-1' });
  expect((record as { at: number }).at).toBeGreaterThan(Date.now() - 60_000);
});

it('gives work a queue of its own, which anybody can look into', async () => {
  const [name, mail] = [queueName(), queueName()];
  const store = bullmqStore({
    connection,
    queue: name,
    queues: { [mail]: { concurrency: 1, limiter: { max: 100, duration: 1_000 } } },
  });
  expect(() => store.queue()).toThrow('PERF_ERR_STORE: `store.queue()` works once the application has booted');
  const app = await start({ store });
  await app.deferrer.enqueue(SendReceipt, { order: 'o-1' }, { queue: mail });
  await until('it to run', () => app.log.ran.length === 1);
  expect(store.queue(mail).name).toBe(mail);
  await until('it to be done', async () => (await store.queue(mail).getCompletedCount()) === 1);
  expect(await store.queue().getJobCounts()).toMatchObject({ completed: 0, waiting: 0 });
});
