import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { Deferrer, DurableWork, type DeferredWork } from '../../src/index.js';
import { startApp, type TestApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

const { hostname, port } = new URL(inject('redisUrl'));
const connection = { host: hostname, port: Number(port) };
const ran: string[] = [];

@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork<string> {
  run(id: string): void {
    ran.push(id);
  }
}

/** As where the options of `PerfModule.forRoot()` are made once, when the file of `AppModule` is loaded. */
describe('one bullmqStore() in several applications of a process', () => {
  const name = `shared-${randomUUID()}`;
  const observer = new Redis(connection);
  const queue = new Queue(name, { connection });
  afterAll(async () => {
    observer.disconnect();
    await queue.obliterate({ force: true });
    await queue.close();
  });
  const clientName = `of-${randomUUID()}`;
  const store = bullmqStore({ connection: { ...connection, connectionName: clientName }, queue: name });
  const connections = async (): Promise<number> =>
    String(await observer.client('LIST'))
      .split('\n')
      .filter((line) => line.includes(clientName)).length;
  const start = (): Promise<TestApp> =>
    startApp('fastify', { metadata: { providers: [SendReceipt] }, perf: { defer: { store } } });
  const enqueue = async (app: TestApp, id: string): Promise<void> => {
    await app.app.get(Deferrer).enqueue(SendReceipt, id);
    await until(`${id} to run`, () => ran.includes(id), 5_000);
  };

  it('one after the other: each has its worker', async () => {
    for (const id of ['first', 'second', 'third']) {
      const app = await start();
      await enqueue(app, id);
      expect(await store.queue().getJobCountByTypes('completed', 'active')).toBe(ran.length);
      await app.close();
    }
    await until('their connections to end', async () => (await connections()) === 0);
  });

  it('at a time: one that closes takes nothing from the other, and none leaves a connection', async () => {
    const [one, other] = [await start(), await start()];
    await enqueue(one, 'of one');
    await enqueue(other, 'of the other');
    await one.close();
    await enqueue(other, 'of the one that is left');
    await other.close();
    await until('their connections to end', async () => (await connections()) === 0);
  });
});
