import type { Redis, RedisOptions } from 'ioredis';
import { optionalPeer } from '../../core/optional-peer.js';

/** An ioredis client, of whichever major. */
export interface RedisCacheClient {
  duplicate(override: object): object;
}

/** A URL, ioredis options, or an ioredis client, which is duplicated and never touched otherwise. */
export type RedisCacheConnection = string | RedisOptions | RedisCacheClient;

/** A connection that owes an answer for so long is half open, milliseconds: it is made anew. */
const SILENT_MS = 10_000;

/** A command that cannot be sent now fails at once, and none is sent twice: it would be told as newer than it is. */
const OPTIONS = {
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  autoResubscribe: false,
  maxRetriesPerRequest: 0,
  lazyConnect: true,
  replyMapping: 'legacy',
  socketTimeout: SILENT_MS,
  retryStrategy: (times: number) => Math.min(2_000, 50 * 2 ** Math.min(times, 6)),
} as const;

/**
 * A client of our own for each of `count` purposes, none of them connected yet.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function clientsOf(connection: RedisCacheConnection, count: number): Promise<Redis[]> {
  const { Redis } = await optionalPeer('ioredis', '`redisCache()`', () => import('ioredis'));
  return Array.from({ length: count }, () => {
    if (typeof connection === 'string') return new Redis(connection, OPTIONS);
    if (isClient(connection)) return connection.duplicate(OPTIONS) as Redis;
    return new Redis({ ...(connection as Omit<RedisOptions, 'replyMapping'>), ...OPTIONS });
  });
}

const isClient = (connection: object): connection is RedisCacheClient =>
  'duplicate' in connection && typeof connection.duplicate === 'function';
