import type { Redis, RedisOptions } from 'ioredis';
import { backoffMs } from '../../core/backoff.js';
import { value, type Option } from '../../core/option.js';
import { optionalPeer } from '../../core/optional-peer.js';

/** An ioredis client, of whichever major. One of node-redis has no `pipeline`. */
export interface RedisCacheClient {
  duplicate(...given: never[]): object;
  pipeline(...given: never[]): object;
}

/** A URL, ioredis options, or an ioredis client, also a `Cluster`, which is duplicated and never touched otherwise. A `keyPrefix` is not used. */
export type RedisCacheConnection = string | RedisOptions | RedisCacheClient;

/** Back soon after an outage, and not with all other pods at once. */
export const reconnectInMs = (times: number): number => backoffMs(times, { baseMs: 100, maxMs: 2_000 });

/** A connection that cannot write is made anew this often, milliseconds. */
const ANEW_MS = 1_000;

/** Whether an error needs a new connection. READONLY: after a failover the connection still leads to the old primary. */
export function needsAnew(): (error: Error) => boolean {
  let triedMs = -Infinity;
  return ({ message }) => {
    // Each command of a bulk gets the same answer.
    if (!message.includes('READONLY') || performance.now() - triedMs < ANEW_MS) return false;
    triedMs = performance.now();
    return true;
  };
}

/** A client of ours. */
export interface OwnOptions {
  /** Options of each connection, of those to the nodes of a Cluster too. */
  readonly each: object;
  /** False: a command that cannot be sent now fails at once. */
  readonly enableOfflineQueue: boolean;
  readonly lazyConnect: boolean;
  /** Milliseconds until the next attempt to connect. ioredis ends, and lets the process end, when it gets no number. */
  readonly retryStrategy: (times: number) => number | null;
}

/** Each entry names its keys by its `prefix`. */
const OWN_PREFIX = { keyPrefix: '' };

/** Makes a client by the rules of every entry: addresses and passwords are the application's own options. */
export function openClient(ioredis: Ioredis | null, connection: RedisCacheConnection, own: OwnOptions): Redis {
  const { retryStrategy, enableOfflineQueue, lazyConnect } = own;
  const each = { ...own.each, ...OWN_PREFIX };
  const whole = { ...OWN_PREFIX, enableOfflineQueue, lazyConnect };
  if (isCluster(connection)) {
    const redisOptions = { ...connection.options.redisOptions, ...each };
    const ofCluster = { ...whole, enableReadyCheck: true, clusterRetryStrategy: retryStrategy, redisOptions };
    return connection.duplicate([], ofCluster) as Redis;
  }
  const ofOne: object = { ...each, ...whole, retryStrategy, sentinelRetryStrategy: retryStrategy };
  if (isClient(connection)) return (connection as Redis).duplicate(ofOne);
  return new ioredis!.Redis({ ...connectionOptions(connection), ...ofOne });
}

type Ioredis = Pick<typeof import('ioredis'), 'Redis'>;
/** @throws PERF_ERR_MISSING_PEER */
export const loadRedis = (neededBy: string): Promise<Ioredis> =>
  optionalPeer('ioredis', neededBy, () => import('ioredis'));

/**
 * A client that is not connected yet, and whose commands fail at once without a connection.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function makeClient(connection: RedisCacheConnection, each: object, neededBy: string): Promise<Redis> {
  const ioredis = isClient(connection) ? null : await loadRedis(neededBy);
  return openClient(ioredis, connection, {
    // ioredis waits for the end of a connection that was refused, too.
    each: { ...each, disconnectTimeout: 100, reconnectOnError: needsAnew() },
    enableOfflineQueue: false,
    lazyConnect: true,
    retryStrategy: reconnectInMs,
  });
}

type Duplicated = Pick<RedisCacheClient, 'duplicate'>;
export const isClient = (connection: object | string): connection is Duplicated =>
  typeof (connection as Partial<Duplicated>).duplicate === 'function';

/** The used part of an ioredis `Cluster`. */
interface RedisCluster {
  readonly options: { readonly redisOptions?: object };
  duplicate(startupNodes: readonly [], override: object): object;
  nodes(): readonly Redis[];
}
/** A command or script may use keys of one slot only: those with the same hash tag, `{…}`. */
export const isCluster = (connection: object | string): connection is RedisCluster =>
  isClient(connection) && 'isCluster' in connection && connection.isCluster === true;

/** The `connection` of every entry that uses Redis. */
export const connectionOption = (): Option<RedisCacheConnection> =>
  value('a URL (`redis:` or `rediss:`), ioredis options or an ioredis client', isConnection);

function isConnection(given: unknown): given is object | string {
  if (typeof given === 'string') return isRedisUrl(given);
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false;
  const { url } = given as { url?: unknown };
  if (url !== undefined && !isRedisUrl(url)) return false;
  return !isClient(given) || 'pipeline' in given;
}

const isRedisUrl = (given: unknown): boolean =>
  typeof given === 'string' &&
  /^rediss?:/.test(given) &&
  URL.canParse(given) &&
  /^\/?\d*$/.test(new URL(given).pathname);

/** The ioredis options of a URL, which may be the `url` of BullMQ's options, too: BullMQ 5.0 takes none. */
export function connectionOptions(given: string | object): object {
  const { url, ...options } = typeof given === 'string' ? { url: given } : (given as { url?: string });
  return url === undefined ? options : { ...optionsFromUrl(url), ...options };
}

function optionsFromUrl(text: string): RedisOptions {
  const { hostname, port, username, password, pathname, protocol, searchParams } = new URL(text);
  return {
    host: hostname.replaceAll(/[[\]]/g, ''),
    port: Number(port || 6379),
    db: Number(pathname.slice(1)),
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
    ...Object.fromEntries([...searchParams].map(([key, text]) => [key, /^\d+$/.test(text) ? Number(text) : text])),
  };
}
