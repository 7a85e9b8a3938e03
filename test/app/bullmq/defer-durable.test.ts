import { Body, Controller, Get, Inject, Injectable, Module, Param, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type Job } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import {
  Deferrer,
  DeferWork,
  DurableWork,
  type DeferContext,
  type DeferInfo,
  type DeferredRecord,
  type DeferredBatchWork,
  type DeferredWork,
  PerfModule,
} from '../../../src/index.js';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { settle } from '../../../src/entries/testing.js';
import { MemoryPlace, MemoryStore } from '../../unit/contract/memory-store.js';
import { startApp, type TestApp } from '../../fixtures/app.js';
import { connection, queueName, queueNamed } from '../../fixtures/redis.js';
import { until } from '../../fixtures/until.js';
import { startDeferring } from '../../fixtures/works.js';

@Injectable()
class Sent {
  readonly lines: Record<string, unknown>[] = [];
}

@Injectable()
@DurableWork()
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
@DurableWork()
class SendReceipts implements DeferredBatchWork<{ orderId: string }> {
  prepare({ result }: DeferContext): { orderId: string } {
    return { orderId: (result as { id: string }).id };
  }
  runBatch(): void {}
}

@Injectable()
@DurableWork()
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
  @DeferWork(SendReceipts, { durable: true, name: 'receipts' })
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

const metadata = { controllers: [OrdersController], providers: [Sent, SendReceipt, SendReceipts, Unserializable] };
const post = (running: TestApp, path: string, id: string): Promise<Response> =>
  fetch(`${running.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-request-id': `r-${id}` },
    body: JSON.stringify({ id }),
  });
const deferredIn = (running: TestApp): DeferredRecord[] =>
  running.sink.records.filter((record) => record.kind === 'deferred');

async function start(store: Parameters<typeof bullmqStore>[0] | MemoryStore) {
  const defer = { store: store instanceof MemoryStore ? store : bullmqStore(store) };
  const running = await startDeferring('fastify', metadata, defer);
  return { ...running, lines: running.app.get(Sent).lines };
}

it('runs the same class in a worker of this process, with the request’s id and status', async () => {
  const running = await start({ connection, queue: queueName() });
  expect((await post(running, '/orders', 'o-1')).status).toBe(201);
  await until('the receipt', () => running.lines.length === 1);
  expect(running.lines).toEqual([{ orderId: 'o-1', attempt: 1, requestId: 'r-o-1', status: 201 }]);
  await settle(running.app);
  expect(running.deferrer.stats()).toMatchObject({ accepted: 1, completed: 1, stored: 1, buffered: 0 });
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
  const { deferrer } = await startDeferring('fastify', { providers }, { store });
  await deferrer.enqueue(SendReceipt, { orderId: 'later' }, { queue: mail });
  expect(deferrer.stats()).toMatchObject({ stored: 2, retried: 0 });
});

it('is handed to a worker in another application that has no controllers', async () => {
  const queue = queueName();
  const running = await start({ connection, queue, worker: false });
  @Module({
    imports: [PerfModule.forRoot({ defer: { store: bullmqStore({ connection, queue, worker: { concurrency: 2 } }) } })],
    providers: [Sent, SendReceipt],
  })
  class WorkerModule {}
  const worker = await NestFactory.createApplicationContext(WorkerModule, { logger: false, abortOnError: false });
  onTestFinished(() => worker.close());
  await Promise.all(['a', 'b', 'c'].map((id) => post(running, '/orders', id)));
  const { lines } = worker.get(Sent);
  await until('the receipts', () => lines.length === 3);
  expect(lines.map(({ orderId }) => String(orderId)).toSorted()).toEqual(['a', 'b', 'c']);
  expect(running.lines).toEqual([]);
});

it('tries a failing job again and records both attempts', async () => {
  const running = await start({ connection, queue: queueName() });
  await post(running, '/orders', 'fails-once');
  await until('the second attempt', () => running.lines.length === 1);
  expect(running.lines[0]).toMatchObject({ attempt: 2 });
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
  await first.deferrer.idle();
  const [job] = await queueNamed(queue).getJobs(['waiting']);
  const redis = new Redis(connection);
  // What BullMQ's script that looks for stalled jobs writes.
  await redis.hset(`bull:${queue}:${job!.id}`, 'defa', 'job stalled more than allowable limit');
  await redis.quit();
  const second = await start({ connection, queue });
  await until('the failure', () => deferredIn(second).length === 1);
  expect(deferredIn(second)).toMatchObject([
    { name: 'SendReceipt', outcome: 'failed', requestId: 'r-o-1', error: 'job stalled more than allowable limit' },
  ]);
  expect(second.lines).toEqual([]);
  expect(second.deferrer.stats()).toMatchObject({ accepted: 1, failed: 1 });
});

it('says of whom a job on its queue is not', async () => {
  const queue = queueName();
  const lines: string[] = [];
  const keep = (line: unknown): void => void lines.push(String(line));
  const running = await startApp('fastify', {
    metadata,
    perf: { defer: { store: bullmqStore({ connection, queue }) } },
    nest: { logger: { log: keep, warn: keep, error: keep } },
  });
  onTestFinished(() => running.close());
  await queueNamed(queue).add('welcome', { to: 'a' });
  await until('the report', () => lines.some((line) => line.includes('is no durable work of nestjs-perf')));
  expect(running.app.get(Deferrer).stats()).toMatchObject({ accepted: 0, failed: 0 });
});

it('puts many small items of concurrent requests into few jobs', async () => {
  const queue = queueName();
  const running = await start({ connection, queue, worker: false });
  await Promise.all(Array.from({ length: 50 }, (_, i) => post(running, '/orders/bulk', `o-${i}`)));
  await running.deferrer.idle();
  const jobs: Job[] = await queueNamed(queue).getJobs(['waiting']);
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
  expect([place.known.size, running.deferrer.stats().accepted]).toEqual([0, 0]);
});

it('data that is no JSON costs the client nothing, and the failure names the work and the handler', async () => {
  const running = await start(new MemoryStore(new MemoryPlace(), false));
  expect((await fetch(`${running.url}/orders/bigint`)).status).toBe(200);
  await settle(running.app);
  expect(deferredIn(running)).toMatchObject([{ name: 'Unserializable', outcome: 'failed' }]);
  expect(deferredIn(running)[0]?.error).toBe(
    'PERF_ERR_SERIALIZE: the data of Unserializable of "OrdersController.bigint" must be JSON, but cannot be serialised: ' +
      'Do not know how to serialize a BigInt. Pass plain objects, arrays, strings, numbers, booleans and null',
  );
});
