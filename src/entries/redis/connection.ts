import type { Redis, RedisOptions } from 'ioredis';
import { backoffMs } from '../../core/backoff.js';
import { optionalPeer } from '../../core/optional-peer.js';

/** An ioredis client, of whichever major. One of node-redis has no `pipeline`. */
export interface RedisCacheClient {
  duplicate(override: object): object;
  pipeline(...given: never[]): object;
}

/** A URL, ioredis options, or an ioredis client, which is duplicated and never touched otherwise. */
export type RedisCacheConnection = string | RedisOptions | RedisCacheClient;

/** Back soon after an outage, and not with all other pods at once. */
export const reconnectInMs = (times: number): number => backoffMs(times, { baseMs: 100, maxMs: 2_000 });

/** A connection that cannot write is made anew this often, milliseconds. */
const ANEW_MS = 1_000;

/**
 * Whether an error needs a new connection. READONLY: after a failover the connection still leads to the old primary. NOSCRIPT: in
 * transactions of older BullMQs, ioredis takes a script that the server lacks for loaded, for as long as the connection lives.
 */
export function needsAnew(words: RegExp): (error: Error) => boolean {
  let triedMs = -Infinity;
  return ({ message }) => {
    // Each command of a bulk gets the same answer.
    if (!words.test(message) || performance.now() - triedMs < ANEW_MS) return false;
    triedMs = performance.now();
    return true;
  };
}

/** A command that cannot be sent now fails at once. ioredis waits for the end of a connection that was refused, too. */
const ALWAYS = { enableOfflineQueue: false, lazyConnect: true, retryStrategy: reconnectInMs, disconnectTimeout: 100 };

/** @throws PERF_ERR_MISSING_PEER */
export const loadRedis = (neededBy: string): Promise<Pick<typeof import('ioredis'), 'Redis'>> =>
  optionalPeer('ioredis', neededBy, () => import('ioredis'));

/**
 * A client of our own, not connected yet.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function clientOf(connection: RedisCacheConnection, own: object, neededBy: string): Promise<Redis> {
  const override: object = { ...own, ...ALWAYS, reconnectOnError: needsAnew(/READONLY/) };
  if (isClient(connection)) return connection.duplicate(override) as Redis;
  const { Redis } = await loadRedis(neededBy);
  if (typeof connection === 'string') return new Redis(connection, override);
  const options: object = { ...connection, ...override };
  return new Redis(options);
}

type Duplicated = Pick<RedisCacheClient, 'duplicate'>;
export const isClient = <C extends Duplicated>(connection: C | object | string): connection is C =>
  typeof (connection as Partial<C>).duplicate === 'function';

/** Whether a value describes a connection to one server: a Cluster has `nodes`. */
export const isConnection = (given: unknown): boolean =>
  typeof given === 'object' &&
  given !== null &&
  !Array.isArray(given) &&
  !('nodes' in given) &&
  (!isClient(given) || 'pipeline' in given);
