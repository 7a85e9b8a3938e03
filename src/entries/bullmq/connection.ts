import { once, type EventEmitter } from 'node:events';
import type { ConnectionOptions, Queue } from 'bullmq';
import { within } from '../../core/within.js';
import { PerfError } from '../../core/perf.error.js';
import { isClient, needsAnew, connectionOptions, OWN_PREFIX, reconnectInMs } from '../redis/connection.js';

export type Bullmq = typeof import('bullmq');

/** Connection options of a queue or worker, and how to end the clients that were made for it. */
export interface Connection {
  readonly options: ConnectionOptions;
  /**
   * Ends reconnecting, also on connections that BullMQ has copied from it, and a client that we have made: BullMQ leaves
   * alone what it was handed, and does not get through to a connection that was never made.
   */
  readonly release: () => void;
}

/** A connection that owes an answer for so long is half open, milliseconds: it is made anew. */
const SILENT_MS = 10_000;
const WORKER_BEAT_MS = 8_000;
/** A Sentinel that owes an answer for so long is given up, and the next is asked, milliseconds. */
const SENTINEL_MS = 3_000;

/** BullMQ's loop asks again at once when Redis has refused its command: when it may, milliseconds. */
const REFUSED_MS = 1_000;

type RetryStrategy = (times: number) => unknown;

/** The used part of an ioredis client. BullMQ's own type does not fit: BullMQ 5's is that of ioredis 5 only. */
export interface RedisClient {
  readonly options?: { retryStrategy?: RetryStrategy | null; reconnectOnError?: ((error: Error) => unknown) | null };
  duplicate(override: object): { disconnect(): void } & object;
}

type GivenOptions = RedisClient['options'] & {
  readonly sentinelRetryStrategy?: RetryStrategy | null;
  readonly sentinelCommandTimeout?: number;
};

/** A client of ioredis as BullMQ hands it out. */
export interface WorkerClient {
  readonly status: string;
  disconnect(reconnect?: boolean): void;
  ping(): Promise<unknown>;
  duplicate(override: object): WorkerClient;
}

export type RedisConnection = string | ConnectionOptions | RedisClient;

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

/** BullMQ 6 has no `client`, and adds in a pipeline, whose errors ioredis does hear. */
export async function reconnect(queue: object): Promise<void> {
  const { client } = queue as { client?: Promise<{ disconnect(reconnect: boolean): void }> };
  (await client)?.disconnect(true);
}

export function clientOf(queue: Queue): Promise<WorkerClient & EventEmitter> {
  // BullMQ 5, and BullMQ 6.
  const of = queue as { client?: Promise<unknown>; getBackend?(): object };
  return (of.client ?? (of.getBackend!() as { client: Promise<unknown> }).client) as ReturnType<typeof clientOf>;
}

/** Waits while a connection is being made, `SILENT_MS` at most: commands of a producer would fail until then, though nothing is wrong. */
export async function attempted(queue: Queue): Promise<void> {
  const over = new AbortController();
  const ended = async (): Promise<void> => {
    const client = await clientOf(queue);
    if (!client.status.startsWith('connect')) return;
    const ends = ['ready', 'close'].map((event) => once(client, event, { signal: over.signal }));
    // Rejects where the client tells of an error.
    await Promise.race(ends).catch(() => {});
  };
  await within(SILENT_MS, ended).finally(() => over.abort());
}

/**
 * How to connect workers: by duplicates of a queue's client, which BullMQ tells of at once. Of options it would make clients that
 * nobody sees before they are ready, and one that is half open until then would never be given up.
 * A worker may wait for as long as it takes, and BullMQ demands it. The application's own bounds would end its reads. So would
 * ioredis' `socketTimeout`, which in ioredis 5 also holds up the end of the process: what is half open is given up here.
 */
export function workerConnection(connection: RedisConnection, pattern: WorkerClient): Connection {
  const override = {
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    commandTimeout: undefined,
    socketTimeout: undefined,
  };
  const made = connect(connection, override, isRefused, pattern);
  const client = made.options as unknown as WorkerClient;
  const beats = [watch(client, true)];
  const copies: WorkerClient[] = [];
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (given) => {
    const copy = duplicate(given);
    copies.push(copy);
    // Reads that wait BullMQ gives up itself.
    beats.push(watch(copy, false));
    return copy;
  };
  return {
    options: made.options,
    release: () => {
      for (const beat of beats) clearInterval(beat);
      made.release();
      // Another goodbye to one that has ended would hold up the end of the process for 2 s.
      for (const copy of copies) if (copy.status !== 'end') copy.disconnect();
    },
  };
}

/** An error that `endsTurn` is answered by a connection made anew, after `REFUSED_MS`: until then commands wait. */
function connect(
  connection: RedisConnection,
  override: object,
  endsTurn: (error: Error) => boolean = () => false,
  pattern: object | string = connection,
): Connection {
  let released = false;
  let refused = false;
  const own = isClient(connection) ? connection.options : connectionOptions(connection);
  const given: GivenOptions | undefined = own;
  // ioredis gives up, and lets the process end, when a strategy returns no number. The application's own may give up for its client.
  const untilReleased =
    // BullMQ's own default waits up to 20 s.
    (usual: RetryStrategy | null = reconnectInMs): RetryStrategy =>
      (times) => {
        if (released) return null;
        const pausesMs = refused ? REFUSED_MS : usual?.(times);
        refused = false;
        return typeof pausesMs === 'number' ? pausesMs : reconnectInMs(times);
      };
  const usualAnew = given?.reconnectOnError ?? needsAnew(/READONLY/);
  const reconnectOnError = (error: Error): unknown => {
    const ends = endsTurn(error);
    refused ||= ends;
    return usualAnew(error) || ends;
  };
  // Without these options BullMQ's first attempt would be its last.
  const options = {
    ...override,
    ...OWN_PREFIX,
    lazyConnect: false,
    retryStrategy: untilReleased(given?.retryStrategy),
    sentinelRetryStrategy: untilReleased(given?.sentinelRetryStrategy),
    sentinelCommandTimeout: given?.sentinelCommandTimeout ?? SENTINEL_MS,
    reconnectOnError,
  };
  const client = isClient<RedisClient>(pattern) ? pattern.duplicate(options) : null;
  return {
    options: client ?? ({ ...own, ...options } as ConnectionOptions),
    release: () => {
      released = true;
      client?.disconnect();
    },
  };
}

/** Makes a connection anew that waits for the answer to a ping, or to its greeting, from one beat to the next. */
function watch(client: WorkerClient, pings: boolean): NodeJS.Timeout {
  let owing: string | null = null;
  const answered = (): void => void (owing = null);
  const beat = (): void => {
    const { status } = client;
    if (status === owing) {
      owing = null;
      return client.disconnect(true);
    }
    owing = status === 'connect' || (status === 'ready' && pings) ? status : null;
    if (owing === 'ready') client.ping().then(answered, answered);
  };
  return setInterval(beat, WORKER_BEAT_MS).unref();
}

/** Redis lacks memory, a disk or a replica, or its user lacks the right to a command of BullMQ's loop. */
const isRefused = ({ message }: Error): boolean =>
  /^(?:OOM|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|LOADING|READONLY|BUSY|NOAUTH|NOPERM .*'(?:eval|evalsha|bzpopmin)') /.test(
    message,
  );
