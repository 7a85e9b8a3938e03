import { randomUUID } from 'node:crypto';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { Injectable, type INestApplication, type OnModuleInit } from '@nestjs/common';
import { Queue } from 'bullmq';
import { expect, inject, it } from 'vitest';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { Deferrer, DurableWork, type DeferredWork } from '../../src/index.js';
import { startApp } from '../fixtures/app.js';
import { until } from '../fixtures/until.js';

@Injectable()
@DurableWork()
class SendReceipt implements DeferredWork {
  run(): void {}
}

const { hostname, port } = new URL(inject('redisUrl'));
const connection = { host: hostname, port: Number(port) };

// The board of docs/durable-work.md. The queue is there once the application has booted: a board is mounted before and filled after.
it('bull-board shows the queue of durable work', async () => {
  const queue = `board-${randomUUID()}`;
  const store = bullmqStore({ connection, queue, worker: false });
  const board = new ExpressAdapter();
  board.setBasePath('/queues');
  const { addQueue } = createBullBoard({ queues: [], serverAdapter: board });
  const app = await startApp('express', {
    metadata: { providers: [SendReceipt] },
    perf: { defer: { store } },
    beforeInit: (it: INestApplication) => void it.use('/queues', board.getRouter()),
  });
  addQueue(new BullMQAdapter(store.queue()));
  await app.app.get(Deferrer).enqueue(SendReceipt, { orderId: 'o-1' }, { name: 'receipt' });

  const answer = await fetch(`${app.url}/queues/api/queues?activeQueue=${queue}&status=waiting`);
  const { queues } = (await answer.json()) as {
    queues: { name: string; counts: { waiting: number }; jobs: { name: string }[] }[];
  };
  expect(queues).toMatchObject([{ name: queue, counts: { waiting: 1 }, jobs: [{ name: 'receipt' }] }]);
  await store.queue().obliterate({ force: true });
  await app.close();
});

it('a queue that is looked at, before the workers start or later, keeps its jobs: it may be somebody else’s', async () => {
  // A job that this application cannot read: its worker would fail it.
  const foreign = async (): Promise<Queue> => {
    const queue = new Queue(`foreign-${randomUUID()}`, { connection });
    await queue.add('welcome', { to: 'ada' });
    return queue;
  };
  const [early, late, named] = [await foreign(), await foreign(), await foreign()];
  const store = bullmqStore({ connection, queue: `own-${randomUUID()}`, queues: { [named.name]: {} } });
  @Injectable()
  class Board implements OnModuleInit {
    onModuleInit(): void {
      store.queue(early.name);
    }
  }
  const app = await startApp('express', { metadata: { providers: [Board] }, perf: { defer: { store } } });
  expect(store.queue(late.name).name).toBe(late.name);
  await until('the worker of the queue in `queues` to fail its job', async () => (await named.getFailedCount()) > 0);
  // A round more: a worker of the one that was looked at last would be as far by then.
  await named.add('welcome', { to: 'bob' });
  await until('the next', async () => (await named.getFailedCount()) > 1);
  await app.close();
  for (const queue of [early, late]) {
    expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 0 });
  }
  for (const queue of [early, late, named]) {
    await queue.obliterate({ force: true });
    await queue.close();
  }
});
