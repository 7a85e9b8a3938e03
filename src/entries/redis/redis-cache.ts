import { applicationName } from '../../core/application-package.js';
import { object } from '../../core/option.js';
import { keyPrefix, timeout } from '../../core/shared-options.js';
import type { CacheLevel2, Level2Maker } from '../../cached-data/level2.js';
import { makeClient, connectionOption, type RedisCacheConnection } from './connection.js';
import { RedisLevel2 } from './redis-level2.js';

/** Options of `redisCache()`. */
export interface RedisCacheOptions {
  /** A URL, ioredis options, or an ioredis client, also a `Cluster`, which is duplicated and never touched otherwise. */
  connection: RedisCacheConnection;
  /**
   * Begins all keys, and the channel of invalidations. Pods with one prefix share their values: give it another name when the
   * shape of values changes.
   * @default 'nestjs-perf:<name in the application's package.json>', with `-<folder>` behind it below `apps/<folder>/` of a monorepo
   */
  prefix?: string;
  /**
   * Time that a load waits for Redis before it calls the source, milliseconds.
   * @default 50
   */
  deadlineMs?: number;
}

/** No command is sent twice: Redis would date it too late. A connection that owes an answer for 10 s is made anew. */
const OVERRIDES = {
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  replyMapping: 'legacy',
  socketTimeout: 10_000,
};

const table = object({
  connection: connectionOption(),
  prefix: keyPrefix,
  deadlineMs: timeout({ default: 50 }),
});

/**
 * The second level of `cache()`: values that all pods share in Redis, and invalidations that reach all of them.
 * @example cache({ level2: redisCache({ connection: { host: 'cache' } }) })
 * @throws PERF_ERR_OPTION; PERF_ERR_MISSING_PEER at boot
 */
export function redisCache(options: RedisCacheOptions): CacheLevel2 {
  const { connection, prefix, deadlineMs } = table.read(options, 'redisCache');
  const maker: Level2Maker = {
    name: 'redis',
    async open(listener) {
      const client = await makeClient(connection, OVERRIDES, '`redisCache()`');
      const begin = prefix ?? `nestjs-perf:${applicationName() ?? 'application'}`;
      const level2 = new RedisLevel2(client, begin, deadlineMs, listener);
      await level2.open();
      return level2;
    },
  };
  return maker;
}
