import { Cluster } from 'ioredis';
import { expect, it } from 'vitest';
import { redisCache, redisHistory } from '../../../src/entries/redis.js';

const NODE_REDIS = { duplicate: () => ({}), sendCommand: () => {}, multi: () => ({}), options: {} };
const CLUSTER = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });

const REFUSED =
  'PERF_ERR_OPTION: `redisCache.connection` must be a URL, ioredis options or an ioredis client, and no Cluster, got an object.';

it('the cache and the history refuse a client of node-redis', () => {
  const connection = NODE_REDIS as never;
  expect(() => redisCache({ connection })).toThrow(REFUSED);
  expect(() => redisHistory({ connection })).toThrow(
    'PERF_ERR_OPTION: `redisHistory().connection` must be options of ioredis, or a client of it, got an object.',
  );
});

it('the cache refuses a Cluster, and the history takes it', () => {
  expect(() => redisCache({ connection: CLUSTER as never })).toThrow(REFUSED);
  expect(redisHistory({ connection: CLUSTER }).shared).toBe(true);
});
