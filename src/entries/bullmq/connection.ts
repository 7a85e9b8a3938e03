import type { ConnectionOptions } from 'bullmq';
import { PerfError } from '../../core/perf.error.js';
import { isClient, needsAnew, reconnectInMs } from '../redis/connection.js';

export type Bullmq = typeof import('bullmq');

/** What a queue or worker connects with, and how to end what was made for it. */
export interface Connection {
  readonly options: ConnectionOptions;
  /**
   * Ends reconnecting, also on connections that BullMQ has copied from it, and a client that we have made: BullMQ leaves
   * alone what it was handed, and does not get through to a connection that was never made.
   */
  release(): void;
}

/** A connection that owes an answer for so long is half open, milliseconds: it is made anew. A worker's reads wait for up to 10 s. */
const SILENT_MS = 10_000;
const WORKER_SILENT_MS = 15_000;

type RetryStrategy = (times: number) => unknown;

/** What is asked of an ioredis client. Not BullMQ's own type: BullMQ 5's is that of ioredis 5 only. */
export interface RedisClient {
  readonly options?: { retryStrategy?: RetryStrategy | null; reconnectOnError?: ((error: Error) => unknown) | null };
  duplicate(override: object): { disconnect(): void } & object;
}

export type RedisConnection = ConnectionOptions | RedisClient;

/**
 * BullMQ, loaded at boot rather than with this module, so that its absence can be said in words.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function importBullmq(connection: RedisConnection): Promise<Bullmq> {
  try {
    const bullmq = await import('bullmq');
    // BullMQ 6 brings no Redis client along, and tells so only in the background.
    if (!isClient(connection) && 'createPostgresBackend' in bullmq) await import('ioredis');
    return bullmq;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw new PerfError(
      'PERF_ERR_MISSING_PEER',
      '`bullmqStore()` needs the packages bullmq and ioredis, which are not installed. Run: npm install bullmq ioredis',
      { cause: error },
    );
  }
}

/**
 * For the producer: a command fails at once without a connection, and after one reconnect with one. ioredis' own offline
 * queue would grow without bound; the buffer here is bounded and counted.
 */
export const producerConnection = (connection: RedisConnection): Connection =>
  connect(connection, { enableOfflineQueue: false, maxRetriesPerRequest: 1, socketTimeout: SILENT_MS });

/** For the worker: it may wait for as long as it takes, and BullMQ demands it. The application's own bound would end its reads. */
export const workerConnection = (connection: RedisConnection): Connection =>
  connect(connection, {
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    commandTimeout: undefined,
    socketTimeout: WORKER_SILENT_MS,
  });

function connect(connection: RedisConnection, override: object): Connection {
  let released = false;
  const given = (isClient(connection) ? connection.options : connection) as RedisClient['options'];
  // BullMQ's own default waits up to 20 s.
  const usual = given?.retryStrategy ?? reconnectInMs;
  // ioredis gives up, and lets the process end, when its strategy returns no number.
  const retryStrategy: RetryStrategy = (times) => (released ? null : usual(times));
  const reconnectOnError = given?.reconnectOnError ?? needsAnew(/READONLY/);
  const options = { ...override, retryStrategy, reconnectOnError };
  const client = isClient(connection) ? connection.duplicate(options) : null;
  return {
    options: client ?? ({ ...connection, ...options } as ConnectionOptions),
    release: () => {
      released = true;
      client?.disconnect();
    },
  };
}
