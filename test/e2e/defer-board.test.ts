import { randomUUID } from 'node:crypto';
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import { Injectable, type INestApplication } from '@nestjs/common';
import { expect, inject, it } from 'vitest';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { Deferrer, type DeferredWork } from '../../src/index.js';
import { startApp } from '../fixtures/app.js';

@Injectable()
class SendReceipt implements DeferredWork {
  run(): void {}
}

// The board of docs/deferred-work.md. The queue is there once the application has booted: a board is mounted before and filled after.
it('bull-board shows the queue of durable work', async () => {
  const { hostname, port } = new URL(inject('redisUrl'));
  const queue = `board-${randomUUID()}`;
  const store = bullmqStore({ connection: { host: hostname, port: Number(port) }, queue, worker: false });
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
