import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import type { Level2Maker } from '../../src/cached-data/level2.js';
import { bullmqStore } from '../../src/entries/bullmq.js';
import { redisCache, redisHistory } from '../../src/entries/redis.js';
import { keptMs } from '../../src/history/rows/tiers.js';
import { startCluster } from '../fixtures/redis.js';
import { NO_WORKER } from '../unit/defer/durable-entry.js';

const url = inject('redisUrl');
const { hostname: host, port } = new URL(url);

function clientOf(options: object): Redis {
  const client = new Redis(url, options);
  onTestFinished(() => client.disconnect());
  return client;
}

/** Writes a key with each entry. */
const WRITERS = {
  async bullmqStore(connection: never, prefix: string) {
    const store = bullmqStore({ connection, prefix, queue: 'mail', worker: false });
    await store.start(NO_WORKER);
    onTestFinished(() => store.close());
    const add = () => store.queue().add('a', {});
    // Commands fail until the first connection is made.
    await expect.poll(() => add().then(Boolean, () => false)).toBe(true);
    onTestFinished(() => store.queue().obliterate({ force: true }));
  },
  async redisCache(connection: never, prefix: string) {
    const listener = { invalidated: () => {}, missed: () => {}, report: () => {} };
    const level2 = await (redisCache({ connection, prefix }) as Level2Maker).open(listener);
    onTestFinished(() => level2.close());
    level2.write('Catalogue.product', '42', '"tea"', { loadedAtMs: Date.now(), keepMs: 60_000 });
    await expect.poll(() => level2.read('Catalogue.product', '42')).toMatchObject({ value: { text: '"tea"' } });
  },
  async redisHistory(connection: never, prefix: string) {
    const { signal } = new AbortController();
    const keeps = { keptMs: (tier: never) => keptMs(tier, 35), maxBytes: 2 ** 20, signal };
    const store = await redisHistory({ connection, prefix }).open(keeps);
    onTestFinished(() => store.close());
    await store.fleet!.lead(true);
  },
};

let started: ReturnType<typeof startCluster> | null = null;
afterAll(async () => (await started)?.stop());

describe.each(Object.entries(WRITERS))('%s', (_name, write) => {
  it.each([
    ['a URL', () => url],
    ['options with a `url`', () => ({ url })],
    ['options with a `keyPrefix`', () => ({ host, port: Number(port), keyPrefix: 'app:' })],
    ['a client with a `keyPrefix`', () => clientOf({ keyPrefix: 'app:' })],
  ])('names its keys by `prefix`, on %s', async (_what, connection) => {
    const prefix = `test-${randomUUID()}`;
    await write(connection() as never, prefix);
    const admin = clientOf({});
    await expect.poll(() => admin.keys(`${prefix}:*`)).not.toEqual([]);
    expect(await admin.keys(`app:${prefix}*`)).toEqual([]);
  });

  it('names its keys by `prefix`, on a Cluster with a `keyPrefix`', async () => {
    const { cluster, keys } = await (started ??= startCluster());
    const prefix = `{test-${randomUUID()}}`;
    await write(cluster as never, prefix);
    await expect.poll(() => keys(`${prefix}:*`)).not.toEqual([]);
    expect(await keys('app:*')).toEqual([]);
    // The application's own client is as it was.
    expect([cluster.status, cluster.options.keyPrefix]).toEqual(['wait', 'app:']);
  });
});
