import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import { bullmqStore } from '../../../src/entries/bullmq.js';
import { connection, obliterate, startCluster } from '../../fixtures/redis.js';
import { durableStoreContract } from '../../unit/contract/durable-store.contract.js';
import { MemoryPlace, MemoryStore } from '../../unit/contract/memory-store.js';

durableStoreContract('the store of the tests', () => {
  const place = new MemoryPlace();
  return { store: ({ worker }) => new MemoryStore(place, worker), clean: async () => {} };
});

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

let started: ReturnType<typeof startCluster> | null = null;
afterAll(async () => (await started)?.stop());

durableStoreContract('bullmqStore with a Cluster', async () => {
  const { cluster } = await (started ??= startCluster());
  const queue = `contract-${randomUUID()}`;
  return {
    store: ({ worker }) => bullmqStore({ connection: cluster, queue, worker }),
    clean: async () => {},
  };
});
