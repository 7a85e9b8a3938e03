import type { Redis, RedisOptions } from 'ioredis';
import { optionalPeer } from '../../core/optional-peer.js';

/** An ioredis client, of whichever major. */
export interface RedisCacheClient {
  duplicate(override: object): object;
}

/** A URL, ioredis options, or an ioredis client, which is duplicated and never touched otherwise. */
export type RedisCacheConnection = string | RedisOptions | RedisCacheClient;

/** A command that cannot be sent now fails at once. */
const ALWAYS = {
  enableOfflineQueue: false,
  lazyConnect: true,
  retryStrategy: (times: number) => Math.min(2_000, 50 * 2 ** Math.min(times, 6)),
};

/** @throws PERF_ERR_MISSING_PEER */
export const loadRedis = (neededBy: string): Promise<Pick<typeof import('ioredis'), 'Redis'>> =>
  optionalPeer('ioredis', neededBy, () => import('ioredis'));

/**
 * A client of our own, not connected yet.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function clientOf(connection: RedisCacheConnection, own: object, neededBy: string): Promise<Redis> {
  const override: object = { ...own, ...ALWAYS };
  if (isClient(connection)) return connection.duplicate(override) as Redis;
  const { Redis } = await loadRedis(neededBy);
  if (typeof connection === 'string') return new Redis(connection, override);
  const options: object = { ...connection, ...override };
  return new Redis(options);
}

export const isClient = (connection: RedisCacheConnection): connection is RedisCacheClient =>
  typeof connection === 'object' && 'duplicate' in connection && typeof connection.duplicate === 'function';
