import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Body,
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  Param,
  Post,
  Scope,
  type OnApplicationShutdown,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { BullModule, getQueueToken, InjectQueue } from '@nestjs/bullmq';
import { Queue, type Job } from 'bullmq';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import {
  Deferrer,
  DeferWork,
  type DeferContext,
  type DeferInfo,
  type DeferredRecord,
  type DeferredWork,
  PerfModule,
} from '../../src/index.js';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { settle } from '../../src/entries/testing.js';
import { MemoryPlace, MemoryStore } from '../contract/memory-store.js';
import { adapters, startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

const { hostname, port } = new URL(inject('redisUrl'));
const connection = { host: hostname, port: Number(port) };

@Injectable()
class Sent {
  readonly lines: Record<string, unknown>[] = [];
}

@Injectable()
class SendReceipt implements DeferredWork<{ orderId: string }> {
  constructor(@Inject(Sent) private readonly sent: Sent) {}
  prepare({ result }: DeferContext): { orderId: string } {
    return { orderId: (result as { id: string }).id };
  }
  run({ orderId }: { orderId: string }, { attempt, requestId, status }: DeferInfo): void {
    if (orderId === 'fails-once' && attempt === 1) throw new Error('mail server busy');
    this.sent.lines.push({ orderId, attempt, requestId, status });
  }
}

@Injectable()
class Unserializable implements DeferredWork {
  prepare(): unknown {
    return { amount: 1n };
  }
  run(): void {}
}

@Controller('orders')
class OrdersController {
  @Post()
  @DeferWork(SendReceipt, { durable: true, attempts: 2 })
  create(@Body() body: { id: string }) {
    return body;
  }
  @Post('bulk')
  @DeferWork(SendReceipt, { durable: true, envelope: true, name: 'receipts' })
  bulk(@Body() body: { id: string }) {
    return body;
  }
  @Get('bigint')
  @DeferWork(Unserializable, { durable: true })
  bigint() {
    return 'fine';
  }
  @Get('fails/:id')
  @DeferWork(SendReceipt, { durable: true })
  fails(@Param('id') id: string): never {
    throw new Error(id);
  }
}

const byHand = (scope: Scope, path: string) => {
  @Controller({ path, scope })
  class ByHandController {
    constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
    @Post()
    create(@Body() { id }: { id: string }) {
      this.deferrer.defer(SendReceipt, { orderId: id }, { durable: true });
      return {};
    }
  }
  return ByHandController;
};
const controllers = [OrdersController, byHand(Scope.DEFAULT, 'by-hand'), byHand(Scope.REQUEST, 'by-hand-scoped')];
const metadata = { controllers, providers: [Sent, SendReceipt, Unserializable] };
const post = (running: TestApp, path: string, id: string): Promise<Response> =>
  fetch(`${running.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': `r-${id}` },
    body: JSON.stringify({ id }),
  });
const deferredIn = (running: TestApp): DeferredRecord[] =>
  running.sink.records.filter((record) => record.kind === 'deferred');

describe.each(adapters)('durable work on %s', (adapter) => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
  function queueName(): string {
    const name = `e2e-${randomUUID()}`;
    cleanups.push(async () => {
      const queue = new Queue(name, { connection });
      await queue.obliterate({ force: true });
      await queue.close();
    });
    return name;
  }
  async function start(store: Parameters<typeof bullmqStore>[0] | MemoryStore, more = {}): Promise<TestApp> {
    const running = await startApp(adapter, {
      metadata,
      perf: { defer: { store: store instanceof MemoryStore ? store : bullmqStore(store), ...more } },
    });
    cleanups.push(() => running.close());
    return running;
  }

  it('runs the same class in a worker of this process, with the request’s id and status', async () => {
    const running = await start({ connection, queue: queueName() });
    expect((await post(running, '/orders', 'o-1')).status).toBe(201);
    const { lines } = running.app.get(Sent);
    await until('the receipt', () => lines.length === 1);
    expect(lines).toEqual([{ orderId: 'o-1', attempt: 1, requestId: 'r-o-1', status: 201 }]);
    await settle(running.app);
    expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 1, completed: 1, stored: 1, buffered: 0 });
    expect(deferredIn(running)).toMatchObject([{ name: 'SendReceipt', outcome: 'completed', requestId: 'r-o-1' }]);
  });

  it.each(['options', 'a client'])('is stored at the first attempt while %s still connect', async (kind) => {
    const [queue, mail] = [queueName(), queueName()];
    @Injectable()
    class Boot {
      constructor(@Inject(Deferrer) private readonly deferrer: Deferrer) {}
      async onModuleInit(): Promise<void> {
        await this.deferrer.enqueue(SendReceipt, { orderId: 'at boot' });
      }
    }
    const given = kind === 'options' ? connection : new Redis({ ...connection, lazyConnect: true });
    const store = bullmqStore({ connection: given, queue, worker: false });
    const providers = [...metadata.providers, Boot];
    const running = await startApp(adapter, { metadata: { providers }, perf: { defer: { store } } });
    cleanups.push(() => running.close());
    const deferrer = running.app.get(Deferrer);
    await deferrer.enqueue(SendReceipt, { orderId: 'later' }, { queue: mail });
    expect(deferrer.stats()).toMatchObject({ stored: 2, retried: 0 });
  });

  it('is handed to a worker in another application that has no controllers', async () => {
    const queue = queueName();
    const running = await start({ connection, queue, worker: false });
    @Module({
      imports: [
        PerfModule.forRoot({ defer: { store: bullmqStore({ connection, queue, worker: { concurrency: 2 } }) } }),
      ],
      providers: [Sent, SendReceipt],
    })
    class WorkerModule {}
    const worker = await NestFactory.createApplicationContext(WorkerModule, { logger: false, abortOnError: false });
    cleanups.push(() => worker.close());
    await Promise.all(['a', 'b', 'c'].map((id) => post(running, '/orders', id)));
    const { lines } = worker.get(Sent);
    await until('the receipts', () => lines.length === 3);
    expect(lines.map(({ orderId }) => String(orderId)).toSorted()).toEqual(['a', 'b', 'c']);
    expect(running.app.get(Sent).lines).toEqual([]);
  });

  it('tries a failing job again and records both attempts', async () => {
    const running = await start({ connection, queue: queueName() });
    await post(running, '/orders', 'fails-once');
    const { lines } = running.app.get(Sent);
    await until('the second attempt', () => lines.length === 1);
    expect(lines[0]).toMatchObject({ attempt: 2 });
    await settle(running.app);
    expect(deferredIn(running).map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ['failed', 1],
      ['completed', 2],
    ]);
  });

  it('counts a job that BullMQ gives up by itself, since it has lost too many processes', async () => {
    const queue = queueName();
    const first = await start({ connection, queue, worker: false });
    await post(first, '/orders', 'o-1');
    await first.app.get(Deferrer).idle();
    const reader = new Queue(queue, { connection });
    const [job] = await reader.getJobs(['waiting']);
    await reader.close();
    const redis = new Redis(connection);
    // What BullMQ's script that looks for stalled jobs writes.
    await redis.hset(`bull:${queue}:${job!.id}`, 'defa', 'job stalled more than allowable limit');
    await redis.quit();
    const second = await start({ connection, queue });
    await until('the failure', () => deferredIn(second).length === 1);
    expect(deferredIn(second)).toMatchObject([
      { name: 'SendReceipt', outcome: 'failed', requestId: 'r-o-1', error: 'job stalled more than allowable limit' },
    ]);
    expect(second.app.get(Sent).lines).toEqual([]);
    expect(second.app.get(Deferrer).stats()).toMatchObject({ accepted: 1, failed: 1 });
  });

  it('says of whom a job on its queue is not', async () => {
    const queue = queueName();
    const lines: string[] = [];
    const keep = (line: unknown): void => void lines.push(String(line));
    const running = await startApp(adapter, {
      metadata,
      perf: { defer: { store: bullmqStore({ connection, queue }) } },
      nest: { logger: { log: keep, warn: keep, error: keep } },
    });
    cleanups.push(() => running.close());
    const foreign = new Queue(queue, { connection });
    await foreign.add('welcome', { to: 'a' });
    await foreign.close();
    await until('the report', () => lines.some((line) => line.includes('is no durable work of nestjs-perf')));
    expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 0, failed: 0 });
  });

  it('puts many small items of concurrent requests into few jobs', async () => {
    const queue = queueName();
    const running = await start({ connection, queue, worker: false });
    await Promise.all(Array.from({ length: 50 }, (_, i) => post(running, '/orders/bulk', `o-${i}`)));
    await running.app.get(Deferrer).idle();
    const reader = new Queue(queue, { connection });
    const jobs: Job[] = await reader.getJobs(['waiting']);
    await reader.close();
    const items = jobs.flatMap((job) => (job.data as { items: { data: { orderId: string } }[] }).items);
    expect(items.map(({ data }) => data.orderId).toSorted()).toEqual(
      Array.from({ length: 50 }, (_, i) => `o-${i}`).toSorted(),
    );
    expect(jobs.length).toBeLessThan(50);
    expect(new Set(jobs.map(({ name }) => name))).toEqual(new Set(['receipts']));
  });

  it('stores nothing for a handler that failed', async () => {
    const place = new MemoryPlace();
    const running = await start(new MemoryStore(place, false));
    expect((await fetch(`${running.url}/orders/fails/x`)).status).toBe(500);
    await settle(running.app);
    expect([place.known.size, running.app.get(Deferrer).stats().accepted]).toEqual([0, 0]);
  });

  it('data that is no JSON costs the client nothing, and the failure names the work and the handler', async () => {
    const running = await start(new MemoryStore(new MemoryPlace(), false));
    expect((await fetch(`${running.url}/orders/bigint`)).status).toBe(200);
    await settle(running.app);
    expect(deferredIn(running)).toMatchObject([{ name: 'Unserializable', outcome: 'failed' }]);
    expect(deferredIn(running)[0]?.error).toBe(
      'PERF_ERR_SERIALIZE: the data of Unserializable of "OrdersController.bigint" must be JSON, but cannot be serialised: ' +
        'Do not know how to serialize a BigInt. Pass plain objects, arrays, strings, numbers, booleans and null.',
    );
  });

  describe('with a spill file', () => {
    function spillPath(): string {
      const folder = mkdtempSync(join(tmpdir(), 'perf-e2e-spill-'));
      cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
      return join(folder, 'spill.ndjson');
    }

    it('has the data on disk before the client has its answer, and strikes it off once it is stored', async () => {
      const path = spillPath();
      const place = new MemoryPlace();
      place.away = true;
      const running = await start(new MemoryStore(place, true, { path, maxBytes: 1024 ** 3 }));
      await post(running, '/orders', 'o-9');
      expect(readFileSync(`${path}.1`, 'utf8')).toContain('"data":{"orderId":"o-9"}');
      await until('it to be buffered', () => running.app.get(Deferrer).stats().buffered === 1);
      place.away = false;
      await running.app.get(Deferrer).idle();
      await until('it to be struck off', () => !existsSync(`${path}.1`));
      expect(running.app.get(Sent).lines).toMatchObject([{ orderId: 'o-9' }]);
    });

    it.each(['by-hand', 'by-hand-scoped'])(
      'has what a handler defers %s on disk before the client has its answer, however slow the disk is',
      async (route) => {
        const path = spillPath();
        const place = new MemoryPlace();
        place.away = true;
        const running = await start(new MemoryStore(place, true, { path, maxBytes: 1024 ** 3 }));
        const file = await open(path, 'w');
        const prototype = Object.getPrototypeOf(file) as typeof file;
        await file.close();
        rmSync(path);
        let synced = false;
        const slow = vi.spyOn(prototype, 'datasync').mockImplementation(async () => {
          await new Promise((resolve) => setTimeout(resolve, 200));
          synced = true;
        });
        expect((await post(running, `/${route}`, 'o-9')).status).toBe(201);
        expect(synced).toBe(true);
        slow.mockRestore();
        place.away = false;
        const { lines } = running.app.get(Sent);
        await until('the receipt', () => lines.length === 1);
        expect(lines).toMatchObject([{ orderId: 'o-9' }]);
      },
    );

    it('keeps on disk what memory cannot hold, and loses nothing', async () => {
      const path = spillPath();
      const place = new MemoryPlace();
      place.away = true;
      const running = await start(new MemoryStore(place, true, { path, maxBytes: 1024 ** 3 }), { maxPending: 5 });
      const ids = Array.from({ length: 40 }, (_, i) => `o-${i}`);
      await Promise.all(ids.map((id) => post(running, '/orders', id)));
      await until('all to be buffered', () => running.app.get(Deferrer).stats().buffered === 40);
      expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 40, dropped: 0 });
      place.away = false;
      await running.app.get(Deferrer).idle();
      const { lines } = running.app.get(Sent);
      await until('all receipts', () => lines.length === 40);
      expect(lines.map(({ orderId }) => String(orderId)).toSorted()).toEqual(ids.toSorted());
      await until('all to be struck off', () => !existsSync(`${path}.1`));
    });

    it('leaves on disk what cannot be stored at shutdown, and sends it at the next start under the same id', async () => {
      const path = spillPath();
      const place = new MemoryPlace();
      place.away = true;
      const first = await start(new MemoryStore(place, false, { path, maxBytes: 1024 ** 3 }), { drainTimeoutMs: 50 });
      await Promise.all(['a', 'b'].map((id) => post(first, '/orders', id)));
      await first.close();
      const ids = readFileSync(`${path}.1`, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: string }).id);
      place.away = false;
      const second = await start(new MemoryStore(place, true, { path, maxBytes: 1024 ** 3 }));
      const { lines } = second.app.get(Sent);
      await until('both receipts', () => lines.length === 2);
      expect([...place.known].toSorted()).toEqual(ids.toSorted());
      expect(lines.map(({ status }) => status)).toEqual([null, null]);
      await until('both to be struck off', () => !existsSync(`${path}.1`));
    });
  });
});

describe.each(adapters)('addJob on %s', (adapter) => {
  interface Added {
    name: string;
    data: unknown;
    opts?: { jobId?: string; priority?: number };
  }
  async function start(queue: unknown, metadata = {}) {
    @Controller('mail')
    class MailController {
      constructor(
        @Inject(Deferrer) private readonly deferrer: Deferrer,
        @Inject('QUEUE') private readonly queue: Queue,
      ) {}
      @Post(':id')
      send(@Param('id') id: string) {
        const data = { id, late: false };
        this.deferrer.addJob(this.queue, 'welcome', data, { priority: 2 });
        data.late = true;
        if (id === 'bad') throw new Error('after arming');
        return { id };
      }
      @Get('circular')
      circular() {
        const data: Record<string, unknown> = {};
        data['self'] = data;
        try {
          this.deferrer.addJob(this.queue, 'welcome', data);
        } catch (error) {
          return { message: (error as Error).message };
        }
        return {};
      }
    }
    return startApp(adapter, {
      metadata: { controllers: [MailController], providers: [{ provide: 'QUEUE', useValue: queue }], ...metadata },
    });
  }

  it('adds after the response, in few bulks, with own ids, the data as it was, and the options given', async () => {
    const bulks: Added[][] = [];
    const queue = { name: 'mail', addBulk: (jobs: Added[]) => (bulks.push(jobs), Promise.resolve(jobs)) };
    const running = await start(queue);
    await Promise.all(Array.from({ length: 60 }, (_, i) => fetch(`${running.url}/mail/${i}`, { method: 'POST' })));
    await running.app.get(Deferrer).idle();
    const jobs = bulks.flat();
    expect(jobs).toHaveLength(60);
    expect(bulks.length).toBeLessThan(60);
    expect(new Set(jobs.map(({ opts }) => opts?.jobId)).size).toBe(60);
    expect(jobs.every(({ opts, data }) => opts?.priority === 2 && !(data as { late: boolean }).late)).toBe(true);
    expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 60, completed: 60, stored: 60, buffered: 0 });
    await running.close();
  });

  it('adds nothing for a request that failed, and says at once that data is no JSON', async () => {
    const bulks: Added[][] = [];
    const running = await start({ name: 'mail', addBulk: (jobs: Added[]) => (bulks.push(jobs), Promise.resolve()) });
    expect((await fetch(`${running.url}/mail/bad`, { method: 'POST' })).status).toBe(500);
    expect(await (await fetch(`${running.url}/mail/circular`)).json()).toEqual({
      message: expect.stringMatching(/^PERF_ERR_SERIALIZE: the data of job "welcome" for queue "mail"/) as string,
    });
    await settle(running.app);
    expect(bulks).toEqual([]);
    expect(running.app.get(Deferrer).stats().accepted).toBe(0);
    await running.close();
  });

  it('hands over every job of @nestjs/bullmq’s own queue before that queue is closed, also when it closes fast', async () => {
    const name = `e2e-${randomUUID()}`;
    @Controller('signups')
    class SignupsController {
      constructor(
        @Inject(Deferrer) private readonly deferrer: Deferrer,
        @InjectQueue(name) private readonly queue: Queue,
      ) {}
      @Post(':id')
      create(@Param('id') id: string) {
        this.deferrer.addJob(this.queue, 'welcome', { id });
        return { id };
      }
    }
    const order: string[] = [];
    @Injectable()
    class Database implements OnApplicationShutdown {
      onApplicationShutdown(): void {
        order.push('database closes');
      }
    }
    const running = await startApp(adapter, {
      metadata: {
        imports: [BullModule.forRoot({ connection }), BullModule.registerQueue({ name })],
        controllers: [SignupsController],
        providers: [Database],
      },
      perf: { defer: { batch: { maxWaitMs: 500, maxJobs: 1_000 } } },
    });
    const deferrer = running.app.get(Deferrer);
    const queue = running.app.get<Queue>(getQueueToken(name));
    await queue.waitUntilReady();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) => fetch(`${running.url}/signups/${i}`, { method: 'POST' })),
    );
    expect(answers.every(({ status }) => status === 201)).toBe(true);
    deferrer.defer(async () => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      order.push('task');
    });
    await running.close();
    expect(order).toEqual(['task', 'database closes']);
    const reader = new Queue(name, { connection });
    expect(await reader.getJobCountByTypes('waiting')).toBe(100);
    await reader.obliterate({ force: true });
    await reader.close();
  });
});
