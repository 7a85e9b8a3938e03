import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Queue } from 'bullmq';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { type DeferInfo, type DeferredWork, Deferrer, DurableWork } from '../../../src/index.js';
import { startApp, type TestApp } from '../../fixtures/app.js';
import { until } from '../../fixtures/until.js';

const { hostname, port } = new URL(inject('redisUrl'));
const connection = { host: hostname, port: Number(port) };

interface Run {
  readonly id: string;
  readonly attempt: number;
  readonly tookMs: number;
}
let ran: Run[] = [];
const keep = ({ id, atMs }: { id: string; atMs: number }, { attempt }: DeferInfo): void =>
  void ran.push({ id, attempt, tookMs: performance.now() - atMs });

@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork<{ id: string; atMs: number }> {
  run = keep;
}
@Injectable()
@DurableWork()
class SendInvoice implements DeferredWork<{ id: string; atMs: number }> {
  run = keep;
}

/** As where `queue` is given and several services have the same, or while a release adds a class. */
describe('two services that have one queue, each with a class of its own', { timeout: 300_000 }, () => {
  let name: string;
  let queue: Queue;
  const apps: TestApp[] = [];
  const start = async (provider: typeof SendReceipt, worker = true): Promise<TestApp> => {
    const app = await startApp('fastify', {
      metadata: { providers: [provider] },
      perf: { defer: { store: bullmqStore({ connection, queue: name, worker }) } },
    });
    apps.push(app);
    return app;
  };
  beforeEach(() => {
    ran = [];
    name = `two-services-${randomUUID()}`;
    queue = new Queue(name, { connection });
  });
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
    await queue.obliterate({ force: true });
    await queue.close();
  });
  const enqueue = (app: TestApp, work: typeof SendReceipt, i: number): Promise<unknown> =>
    app.app.get(Deferrer).enqueue(work, { id: `job-${i}`, atMs: performance.now() });
  const expectEachOnce = async (count: number): Promise<void> => {
    await until('all of them to run', () => ran.length >= count, 250_000);
    expect(new Set(ran.map(({ id }) => id)).size).toBe(count);
    expect(ran).toHaveLength(count);
    expect(ran.filter(({ attempt }) => attempt !== 1)).toEqual([]);
  };

  it('a job that the other service takes first ends in the one that has its class, at its first attempt', async () => {
    const producer = await start(SendReceipt, false);
    const other = await start(SendInvoice);
    await enqueue(producer, SendReceipt, 0);
    await until('the other to hand it back', async () => (await queue.getDelayedCount()) === 1);
    await other.close();
    await start(SendReceipt);
    await expectEachOnce(1);
  });

  it.runIf(process.env['PERF_LONG'] !== undefined)('ends, with two hundred at once', async () => {
    const [receipts, invoices] = [await start(SendReceipt), await start(SendInvoice)];
    const all = Array.from({ length: 200 }, (_, i) =>
      i % 2 === 0 ? enqueue(receipts, SendReceipt, i) : enqueue(invoices, SendInvoice, i),
    );
    await Promise.all(all);
    await expectEachOnce(200);
  });
});
