import { Controller, Get, Injectable, Param, Sse, type ModuleMetadata } from '@nestjs/common';
import { interval, map } from 'rxjs';
import { expect, it } from 'vitest';
import { type DeferOptions, DeferWork } from '../../src/index.js';
import { bullmqStore, type BullmqStoreOptions } from '../../src/entries/bullmq.js';
import { connection, queueName, queueNamed } from '../fixtures/redis.js';
import { until } from '../fixtures/until.js';
import { SendReceipt, startDeferring, WorkLog, WriteAudit } from '../fixtures/works.js';

/** Nest calls it when every module has been told that the application closes. */
@Injectable()
class Closing {
  begun = false;
  beforeApplicationShutdown(): void {
    this.begun = true;
  }
}

@Controller()
class OrdersController {
  @Get('audit/:name')
  @DeferWork(WriteAudit, { durable: true, attempts: 2, backoffMs: 1, batch: { maxItems: 10, maxWaitMs: 3_000 } })
  audit(@Param('name') name: string) {
    return name;
  }
  @Sse('stream')
  stream() {
    return interval(20).pipe(map((data) => ({ data })));
  }
}

const KNOWING = { controllers: [OrdersController], providers: [WorkLog, SendReceipt, WriteAudit, Closing] };
async function start(defer: DeferOptions, metadata: ModuleMetadata = KNOWING) {
  const running = await startDeferring('fastify', metadata, defer);
  return { ...running, log: running.app.get(WorkLog) };
}
const durable = ({ queue = queueName(), ...more }: Partial<BullmqStoreOptions> = {}): DeferOptions => ({
  store: bullmqStore({ connection, queue, ...more }),
});

it('carries durable items to runBatch() together', async () => {
  const app = await start(durable());
  app.log.failing.add('n-3');
  const names = Array.from({ length: 20 }, (_, i) => `n-${i}`);
  await Promise.all(names.map((name) => fetch(`${app.url}/audit/${name}`)));
  await until('all', () => new Set(app.log.batches.flat()).size === 20);
  await until('the batch that failed', () => app.log.batches.filter((batch) => batch.includes('n-3')).length === 2);
  expect(app.log.batches.length).toBeLessThan(12);
});

it('leaves work of a class that it does not know to others, without burning an attempt', async () => {
  const name = queueName();
  const older = await start(durable({ queue: name }), { providers: [WorkLog] });
  const newer = await start(durable({ queue: name, worker: false }));
  await newer.deferrer.enqueue(SendReceipt, { order: 'o-1' });
  const queue = queueNamed(name);
  await until('it to be put back', async () => (await queue.getDelayedCount()) === 1);
  await older.close();
  const knowing = await start(durable({ queue: name }));
  for (const job of await queue.getDelayed()) await job.promote().catch(() => {});
  await until('it to run', () => knowing.log.ran.length === 1);
  expect(knowing.log.ran).toMatchObject([{ data: { order: 'o-1' }, attempt: 1 }]);
});

it('warns of no leak, however many run at a time', async () => {
  const warnings: Error[] = [];
  const heard = (warning: Error): void => void warnings.push(warning);
  process.on('warning', heard);
  const app = await start(durable({ worker: { concurrency: 20 } }));
  let open = (): void => {};
  app.log.gate = new Promise((resolve) => (open = resolve));
  await Promise.all(Array.from({ length: 20 }, (_, i) => app.deferrer.enqueue(SendReceipt, { order: `o-${i}` })));
  await until('all to run', () => app.log.ran.length === 20);
  open();
  await app.app.close();
  process.off('warning', heard);
  expect(warnings).toEqual([]);
});

it('counts the failures of its worker', async () => {
  const app = await start(durable());
  app.log.failing.add('o-1');
  await app.deferrer.enqueue(SendReceipt, { order: 'o-1' });
  await until('the failure to be counted', () => app.deferrer.stats().failed === 1);
  await app.deferrer.enqueue(SendReceipt, { order: 'o-1' }, { attempts: 2, backoffMs: 1 });
  await until('the second attempt', () => app.log.ran.length === 3);
  expect(app.deferrer.stats()).toMatchObject({ accepted: 3, completed: 2, failed: 1 });
});

it('takes no new work once the application begins to close, whatever streams are open', async () => {
  const name = queueName();
  const app = await start({ ...durable({ queue: name }), drainTimeoutMs: 2_000 });
  const leaving = new AbortController();
  const stream = await fetch(`${app.url}/stream`, { signal: leaving.signal });
  await stream.body!.getReader().read();
  const closing = app.close();
  await until('the application to close', () => app.app.get(Closing).begun);
  const queue = queueNamed(name);
  await queue.add('receipt', {
    work: 'SendReceipt',
    timeoutMs: 1_000,
    data: { order: 'late' },
    requestId: null,
    status: null,
    at: 1,
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(app.log.ran).toEqual([]);
  expect(await queue.getJobCountByTypes('waiting', 'delayed')).toBe(1);
  leaving.abort();
  await closing;
});

it('runs what the last durable job has deferred, when the application closes', async () => {
  const app = await start(durable());
  let open = (): void => {};
  app.log.gate = new Promise((resolve) => (open = resolve));
  await app.deferrer.enqueue(SendReceipt, { order: 'followed' });
  await until('it to run', () => app.log.ran.length === 1);
  const closing = app.close();
  setTimeout(open, 100);
  await closing;
  expect(app.log.followUps).toBe(1);
});

it('gives back what is cut off at every shutdown, and no attempt is counted', async () => {
  const name = queueName();
  for (let deploy = 0; deploy < 3; deploy++) {
    const app = await start({ ...durable({ queue: name }), drainTimeoutMs: 50 });
    app.log.gate = new Promise(() => {});
    if (deploy === 0) await app.deferrer.enqueue(SendReceipt, { order: 'long' }, { attempts: 2 });
    await until('it to run', () => app.log.ran.length === 1);
    expect(app.log.ran[0]!.attempt).toBe(1);
    await app.close();
  }
});

it('aborts what still runs when the deadline of the shutdown has passed', async () => {
  const app = await start({ ...durable(), drainTimeoutMs: 300 });
  app.log.gate = new Promise(() => {});
  await app.deferrer.enqueue(SendReceipt, { order: 'hangs' });
  await until('it to run', () => app.log.ran.length === 1);
  await app.close();
  expect(app.log.aborted).toEqual(['hangs']);
});
