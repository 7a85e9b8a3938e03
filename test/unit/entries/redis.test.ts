import { Cluster } from 'ioredis';
import { expect, it } from 'vitest';
import { redisCache, redisHistory } from '../../../src/entries/redis.js';

const NODE_REDIS = { duplicate: () => ({}), sendCommand: () => {}, multi: () => ({}), options: {} };
const CLUSTER = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });

it.each<[string, object]>([
  ['a client of node-redis', NODE_REDIS],
  ['a Cluster', CLUSTER],
])('the cache and the history refuse %s', (_, client) => {
  const connection = client as never;
  expect(() => redisCache({ connection })).toThrow(
    'PERF_ERR_OPTION: `redisCache.connection` must be a URL, ioredis options or an ioredis client, and no Cluster, got an object.',
  );
  expect(() => redisHistory({ connection })).toThrow(
    'PERF_ERR_OPTION: `redisHistory().connection` must be options of ioredis, or a client of it, and no Cluster, got an object.',
  );
});
