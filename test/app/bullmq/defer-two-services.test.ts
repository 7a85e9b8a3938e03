import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
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
  let receipts: TestApp;
  let invoices: TestApp;
  const start = (provider: typeof SendReceipt): Promise<TestApp> =>
    startApp('fastify', {
      metadata: { providers: [provider] },
      perf: { defer: { store: bullmqStore({ connection, queue: name }) } },
    });
  beforeEach(async () => {
    ran = [];
    name = `two-services-${randomUUID()}`;
    receipts = await start(SendReceipt);
    invoices = await start(SendInvoice);
  });
  afterEach(async () => {
    await receipts.close();
    await invoices.close();
    const queue = new Queue(name, { connection });
    await queue.obliterate({ force: true });
    await queue.close();
  });
  const enqueue = async (i: number): Promise<void> => {
    const data = { id: `job-${i}`, atMs: performance.now() };
    if (i % 2 === 0) await receipts.app.get(Deferrer).enqueue(SendReceipt, data);
    else await invoices.app.get(Deferrer).enqueue(SendInvoice, data);
  };
  const expectEachOnce = async (count: number): Promise<void> => {
    await until('all of them to run', () => ran.length >= count, 250_000);
    expect(new Set(ran.map(({ id }) => id)).size).toBe(count);
    expect(ran).toHaveLength(count);
    expect(ran.filter(({ attempt }) => attempt !== 1)).toEqual([]);
  };

  it('each job ends in the service that has its class, whoever takes it first', async () => {
    for (let i = 0; i < 4; i++) {
      await enqueue(i);
      await delay(50);
    }
    await expectEachOnce(4);
  });

  it.runIf(process.env['PERF_LONG'] !== undefined)('ends, with two hundred at once', async () => {
    await Promise.all(Array.from({ length: 200 }, (_, i) => enqueue(i)));
    await expectEachOnce(200);
  });
});
