import { randomUUID } from 'node:crypto';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { inject } from 'vitest';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { durableStoreContract } from './durable-store.contract.js';
import { MemoryPlace, MemoryStore } from './memory-store.js';

const { hostname, port } = new URL(inject('redisUrl'));
// BullMQ 5.0 knows no `url`.
const connection = { host: hostname, port: Number(port) };

durableStoreContract('the store of the tests', () => {
  const place = new MemoryPlace();
  return { store: ({ worker }) => new MemoryStore(place, worker), clean: async () => {} };
});

async function obliterate(name: string): Promise<void> {
  const queue = new Queue(name, { connection });
  await queue.obliterate({ force: true });
  await queue.close();
}

durableStoreContract('bullmqStore with connection options', () => {
  const queue = `contract-${randomUUID()}`;
  return {
    store: ({ worker }) => bullmqStore({ connection, queue, worker }),
    clean: () => obliterate(queue),
  };
});

durableStoreContract('bullmqStore with an ioredis client', () => {
  const queue = `contract-${randomUUID()}`;
  const client = new Redis({ ...connection, maxRetriesPerRequest: null, lazyConnect: true });
  return {
    store: ({ worker }) => bullmqStore({ connection: client, queue, worker: worker && { concurrency: 5 } }),
    clean: async () => {
      client.disconnect();
      await obliterate(queue);
    },
  };
});
