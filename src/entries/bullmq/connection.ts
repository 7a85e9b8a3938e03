import { once } from 'node:events';
import type { ConnectionOptions } from 'bullmq';
import type { Redis } from 'ioredis';
import { within } from '../../core/within.js';
import { optionalPeer } from '../../core/optional-peer.js';
import { loadRedis, needsAnew, openClient, reconnectInMs, type RedisCacheConnection } from '../redis/connection.js';

/** A connection without an answer for so long is half open, milliseconds: ioredis makes a new one. */
const SILENT_MS = 10_000;
/** Longer, since a worker's connection waits for a job for up to 10 s. */
const WORKER_SILENT_MS = 20_000;
/** Delay of a worker's new connection after Redis has refused a command, milliseconds: BullMQ's loop would repeat it at once. */
const REFUSED_MS = 1_000;

export type { RedisCacheClient as RedisClient } from '../redis/connection.js';

/** BullMQ's own type takes clients of the newest ioredis only. */
export type RedisConnection = RedisCacheConnection | ConnectionOptions;

export interface Libraries {
  readonly bullmq: typeof import('bullmq');
  readonly Redis: typeof Redis;
}

type OnError = (error: Error) => void;

/** A client that this library has made. */
export interface OwnClient {
  readonly redis: Redis;
  /** Ends the client, its duplicates and their reconnecting. */
  readonly release: () => void;
}

/** Imports at boot, not with this module: a missing package is then an error that names it. @throws PERF_ERR_MISSING_PEER */
export async function loadLibraries(): Promise<Libraries> {
  const bullmq = await optionalPeer('bullmq', '`bullmqStore()`', () => import('bullmq'));
  const { Redis } = await loadRedis('`bullmqStore()`');
  return { bullmq, Redis };
}

/** For the producer: a command fails at once without a connection, since ioredis' own offline queue would grow without bound. */
export function openProducer(libraries: Libraries, connection: RedisConnection, onError: OnError): OwnClient {
  const bounded = { maxRetriesPerRequest: 1, socketTimeout: SILENT_MS };
  return open(libraries, connection, { each: bounded, enableOfflineQueue: false }, onError);
}

/** Waits while a connection is being made, at most `SILENT_MS`: until then a producer's commands fail though nothing is wrong. */
export async function whenAttempted(redis: Redis): Promise<void> {
  if (!redis.status.startsWith('connect')) return;
  const over = new AbortController();
  const ends = ['ready', 'close'].map((event) => once(redis, event, { signal: over.signal }));
  // Rejects where the client emits an error.
  const ended = (): Promise<unknown> => Promise.race(ends).catch(() => {});
  await within(SILENT_MS, ended).finally(() => over.abort());
}

/** For workers: their commands wait for as long as it takes. */
export function openConsumer(libraries: Libraries, connection: RedisConnection, onError: OnError): OwnClient {
  const unbounded = { maxRetriesPerRequest: null, commandTimeout: undefined, socketTimeout: WORKER_SILENT_MS };
  const own = { each: unbounded, enableOfflineQueue: true };
  const { redis, release } = open(libraries, connection, own, onError, refusesLoop);
  const copies: Redis[] = [];
  const duplicate = redis.duplicate.bind(redis);
  redis.duplicate = (...given) => {
    const copy = duplicate(...given);
    copies.push(copy);
    return copy;
  };
  return {
    redis,
    release: () => {
      for (const client of [redis, ...copies]) client.sendCommand = refuse;
      release();
      // A second `disconnect()` would delay the end of the process by 2 s.
      for (const copy of copies) if (copy.status !== 'end') copy.disconnect();
    },
  };
}

/**
 * A closing worker of BullMQ 5 repeats a command in microtasks while its error is that of a closed connection: the process would hang.
 * This error ends the loop; the job runs again elsewhere.
 */
const refuse: Redis['sendCommand'] = (command) => {
  command.reject(new Error('the application has closed'));
  return command.promise;
};

/** After an error for which `isRefused` is true, the client reconnects after `REFUSED_MS`; until then its commands wait. */
function open(
  libraries: Libraries,
  connection: RedisConnection,
  { each, enableOfflineQueue }: { each: object; enableOfflineQueue: boolean },
  onError: OnError,
  isRefused: (error: Error) => boolean = () => false,
): OwnClient {
  let [released, refused] = [false, false];
  const retryStrategy = (times: number): number | null => {
    const waitMs = refused ? REFUSED_MS : reconnectInMs(times);
    refused = false;
    return released ? null : waitMs;
  };
  const isReadOnly = needsAnew();
  const reconnectOnError = (error: Error): boolean => {
    refused ||= isRefused(error);
    return isRefused(error) || isReadOnly(error);
  };
  // Connected at once: with `lazyConnect` the first attempt would be the last.
  const own = { each: { ...each, reconnectOnError }, enableOfflineQueue, lazyConnect: false, retryStrategy };
  const redis = openClient(libraries, connection as RedisCacheConnection, own);
  redis.on('error', onError);
  const release = (): void => {
    released = true;
    redis.disconnect();
  };
  return { redis, release };
}

/** Redis lacks memory, a disk or a replica, or its user lacks the right to a command of BullMQ's loop. */
const refusesLoop = ({ message }: Error): boolean =>
  /^(?:OOM|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|LOADING|READONLY|BUSY|NOAUTH|NOPERM .*'(?:eval|evalsha|bzpopmin)') /.test(
    message,
  );
