import type { Redis, RedisOptions } from 'ioredis';
import { backoffMs } from '../../core/backoff.js';
import { value, type Option } from '../../core/option.js';
import { optionalPeer } from '../../core/optional-peer.js';

/** An ioredis client, of whichever major. One of node-redis has no `pipeline`. */
export interface RedisCacheClient {
  duplicate(override: object): object;
  pipeline(...given: never[]): object;
}

/** A URL, ioredis options, or an ioredis client, which is duplicated and never touched otherwise. A `keyPrefix` is not used. */
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

/** Each entry names its keys by its `prefix`. */
export const OWN_PREFIX = { keyPrefix: '' };
/** A command that cannot be sent now fails at once. ioredis waits for the end of a connection that was refused, too. */
const ALWAYS = {
  ...OWN_PREFIX,
  enableOfflineQueue: false,
  lazyConnect: true,
  retryStrategy: reconnectInMs,
  disconnectTimeout: 100,
};

/** @throws PERF_ERR_MISSING_PEER */
export const loadRedis = (neededBy: string): Promise<Pick<typeof import('ioredis'), 'Redis'>> =>
  optionalPeer('ioredis', neededBy, () => import('ioredis'));

/**
 * A client of our own, not connected yet.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function makeClient(connection: RedisCacheConnection, own: object, neededBy: string): Promise<Redis> {
  const override: object = { ...own, ...ALWAYS, reconnectOnError: needsAnew() };
  if (isClient(connection)) return connection.duplicate(override) as Redis;
  const { Redis } = await loadRedis(neededBy);
  const options: object = { ...connectionOptions(connection), ...override };
  return new Redis(options);
}

type Duplicated = Pick<RedisCacheClient, 'duplicate'>;
export const isClient = <C extends Duplicated>(connection: C | object | string): connection is C =>
  typeof (connection as Partial<C>).duplicate === 'function';

export const isCluster = (connection: object | string): boolean =>
  typeof connection === 'object' && 'isCluster' in connection && connection.isCluster === true;

/** The `connection` of every entry that uses Redis. */
export const connectionOption = <C>(takes: { cluster: boolean }): Option<C> =>
  value(
    `a URL (\`redis:\` or \`rediss:\`), ioredis options or an ioredis client${takes.cluster ? '' : ', of one server (no Cluster)'}`,
    (given) => isConnection(given) && (takes.cluster || !isCluster(given)),
  );

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
