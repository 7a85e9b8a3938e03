import type { Queue } from 'bullmq';
import { applicationName } from '../../core/application-package.js';
import { feature, number, object, optional, optionError, string, type Option } from '../../core/option.js';
import { within } from '../../core/within.js';
import { PerfError } from '../../core/perf.error.js';
import { describeReason } from '../../core/reason.js';
import { settleAll } from '../../core/settle-all.js';
import { bytes, duration, folderPath, keyPrefix, timeout } from '../../core/shared-options.js';
import type { NewDurableJob, DurableStore, DurableStoreHost, SpillOptions } from '../../defer/durable/durable-store.js';
import { isQueueName } from '../../defer/work-options.js';
import { connectionOption, isCluster } from '../redis/connection.js';
import {
  loadLibraries,
  openConsumer,
  openProducer,
  whenAttempted,
  type Libraries,
  type OwnClient,
  type RedisConnection,
} from './connection.js';
import { makeBatchJob, makeJob } from './job-data.js';
import { JobWorker, type QueueWorkerOptions } from './job-worker.js';

/** Deadline of closing the queues, milliseconds: all work is stored or on disk by then. */
const CLOSE_TIMEOUT_MS = 300;

export interface BullmqStoreOptions {
  /** A URL, ioredis options, or an ioredis client, also a `Cluster`, which is duplicated and never touched otherwise. A `keyPrefix` is not used. */
  connection: RedisConnection;
  /**
   * Prefix of all keys of the queues: BullMQ's own option `prefix`. For a Cluster it has a hash tag, as in `{bull}`.
   * @default 'bull', for a Cluster '{bull}'
   */
  prefix?: string;
  /**
   * Name of the BullMQ queue. Give it to one service alone, and to the workers that run its jobs.
   * @default 'nestjs-perf-<name in the application's package.json>', with `-` for `@` and `/`, and with `-<folder>` behind it below `apps/<folder>/` of a monorepo
   */
  queue?: string;
  /**
   * Queues that works name by `queue`: how many of their jobs run at a time in this process, and how many may start
   * within `duration` milliseconds in all processes. A process without the handlers works off only those named here.
   * @default { concurrency: 10 } each
   */
  queues?: Readonly<Record<string, { concurrency?: number; limiter?: { max: number; duration: number } }>>;
  /**
   * Whether this process works the jobs off as well, and how many at a time. `false` in a process that only answers
   * requests, when another one imports the same classes with `worker: true`.
   * @default { concurrency: 10 }
   */
  worker?: boolean | { concurrency?: number };
  /**
   * A folder on a disk that survives the process. With it, durable data is on disk before the response's last byte, struck off
   * once Redis has it, and sent again after a crash under the same job ids. Processes may share it, also on a volume: each
   * has a folder of its own in it, and takes over those of processes that are gone.
   * @default none
   */
  spillPath?: string;
  /**
   * Upper limit of the spill on disk, bytes. Beyond it durable data is kept in memory only.
   * @default 1_073_741_824 (1 GiB)
   */
  spillMaxBytes?: number;
  /**
   * How long an answer waits for the disk, milliseconds. After that a `@DeferWork` route answers 503 with `overflow: 'reject'`; with any
   * other policy it answers, and its work is in memory only. Requests that come while the disk hangs do not wait for it.
   * @default 5_000
   */
  writeTimeoutMs?: number;
}

/**
 * Durable deferred work on BullMQ 6 or 5.57 and newer: at least once. Redis away, at boot or later, neither delays a request nor stops
 * the application.
 * @throws PERF_ERR_OPTION
 * @example PerfModule.forRoot({ defer: { store: bullmqStore({ connection: { host: 'localhost' } }) } })
 */
export function bullmqStore(options: BullmqStoreOptions): BullmqDurableStore {
  const resolved = table.read(options, 'bullmqStore');
  const { connection, prefix } = resolved;
  if (prefix !== null && isCluster(connection) && !HASH_TAG.test(prefix)) {
    throw optionError('bullmqStore.prefix', 'a text with a hash tag, such as `{bull}`, for a Cluster', prefix);
  }
  return new BullmqStore(resolved);
}

/** Keys with one hash tag are in one slot of a Cluster: https://docs.bullmq.io/patterns/redis-cluster */
const HASH_TAG = /^[^{]*\{[^}]+\}/;

/** Durable work on BullMQ. */
export interface BullmqDurableStore extends DurableStore {
  /**
   * The BullMQ queue that work travels in, for bull-board and other tools: it runs no jobs. With several applications: of the newest.
   * @param name of a work's `queue`; left out, the store's own
   * @throws PERF_ERR_STORE before the application has booted
   */
  queue(name?: string): Queue;
}

class BullmqStore implements BullmqDurableStore {
  readonly name = 'bullmq';
  readonly spill: SpillOptions | null;
  private readonly ownQueue: string;
  private readonly prefix: string;
  private readonly queues = new Map<string, Queue>();
  private readonly workers = new Map<string, JobWorker>();
  /** Queues that this application stores work in, or works off. A queue that `queue()` only opens may be another service's. */
  private readonly served = new Set<string>();
  private started: { libraries: Libraries; producer: OwnClient; host: DurableStoreHost } | null = null;
  private consumer: OwnClient | null = null;
  /** How workers are made; null before Redis' first answer. */
  private workerSettings: { readonly skipVersionCheck: boolean } | null = null;
  /** The application closes: no worker is made any more. */
  private paused = false;
  private connecting: Promise<void> | null = null;
  /** The copy for the application that booted last: `queue()` reads its queues. */
  private newest: BullmqStore = this;

  constructor(private readonly options: ReturnType<typeof table.read>) {
    const { spillPath: path, spillMaxBytes: maxBytes, writeTimeoutMs } = options;
    this.spill = path === null ? null : { path, maxBytes, writeTimeoutMs };
    this.ownQueue = options.queue ?? defaultQueueName();
    this.prefix = options.prefix ?? (isCluster(options.connection) ? '{bull}' : 'bull');
  }

  forApplication(): DurableStore {
    return (this.newest = new BullmqStore(this.options));
  }

  async start(host: DurableStoreHost): Promise<void> {
    const libraries = await loadLibraries();
    const report = reportTo(host, 'Redis', 'Durable work is kept and sent when Redis is back.');
    this.started = { libraries, producer: openProducer(libraries, this.options.connection, report), host };
    this.served.add(this.ownQueue);
  }

  startWorker(): void {
    const { connection, worker, queues } = this.options;
    if (worker === null) return;
    const { libraries, host } = this.started!;
    const report = reportTo(host, 'workers', 'They go on by themselves when Redis is back.');
    const consumer = (this.consumer = openConsumer(libraries, connection, report));
    const serveAll = (skipVersionCheck: boolean): void => {
      this.workerSettings = { skipVersionCheck };
      for (const name of [...this.served, ...queues.keys(), ...host.queues()]) this.serve(name);
    };
    // A worker whose INFO is refused repeats it for ever without yielding to the event loop: it skips the version check.
    consumer.redis.info().then(
      () => serveAll(false),
      () => serveAll(true),
    );
  }

  queue(name = this.ownQueue): Queue {
    const { newest } = this;
    if (newest.started !== null) return newest.queues.get(name) ?? newest.open(name);
    const message = '`store.queue()` works once the application has booted: the queue is made then.';
    throw new PerfError('PERF_ERR_STORE', message);
  }

  async add(jobs: readonly NewDurableJob[], { batch }: { batch: boolean }): Promise<unknown> {
    const { producer } = this.started!;
    const name = jobs[0]!.options.queue ?? this.ownQueue;
    this.serve(name);
    // One wait for all concurrent calls: each adds listeners to the client.
    await (this.connecting ??= whenAttempted(producer.redis).finally(() => (this.connecting = null)));
    return (this.queues.get(name) ?? this.open(name)).addBulk(batch ? [makeBatchJob(jobs)] : jobs.map(makeJob));
  }

  async pauseWorker(): Promise<void> {
    this.paused = true;
    await Promise.all(Array.from(this.workers.values(), (worker) => worker.pause()));
  }

  async stopWorker(deadlineMs: number): Promise<void> {
    this.paused = true;
    await Promise.all(Array.from(this.workers.values(), (worker) => worker.stop(deadlineMs)));
    this.consumer?.release();
  }

  async close(): Promise<void> {
    await within(CLOSE_TIMEOUT_MS, () => settleAll(Array.from(this.queues.values(), (queue) => queue.close())));
    this.started?.producer.release();
  }

  private open(name: string): Queue {
    const { libraries, producer } = this.started!;
    const queue = new libraries.bullmq.Queue(name, {
      connection: producer.redis,
      prefix: this.prefix,
      // Without these two, a queue made while Redis is away waits for ever, and so does every `add`.
      skipWaitingForReady: true,
      skipVersionCheck: true,
    });
    // The client reports its errors.
    queue.on('error', () => {});
    this.queues.set(name, queue);
    return queue;
  }

  /** Marks a queue as served, and makes its worker where jobs may run here. */
  private serve(name: string): void {
    this.served.add(name);
    const { worker, queues } = this.options;
    if (this.paused || this.workerSettings === null || worker === null || this.workers.has(name)) return;
    const { libraries, host } = this.started!;
    const options = queues.get(name) ?? (name === this.ownQueue ? worker : queueRow.read(undefined, name));
    const connection = { connection: this.consumer!.redis, prefix: this.prefix, ...this.workerSettings };
    this.workers.set(name, new JobWorker(libraries.bullmq, name, connection, options, host));
  }
}

const reportTo =
  (host: DurableStoreHost, who: string, advice: string) =>
  (error: Error): void => {
    const cause = `${who} of bullmqStore(): ${describeReason(error)}`;
    host.report(cause, `${cause}. ${advice}`);
  };

/** Services that share a Redis need queues of their own. BullMQ allows no colon in a name, and dashboards no slash. */
function defaultQueueName(): string {
  const name = applicationName()?.replaceAll(/[^\w.-]/g, '-');
  return name === undefined ? 'nestjs-perf' : `nestjs-perf-${name}`;
}

const concurrency = number({ default: 10, unit: 'a whole number of jobs', min: 1, integer: true });
const queueRow = object({
  concurrency,
  limiter: optional(
    object({
      max: number({ default: 1, unit: 'a whole number of jobs', min: 1, integer: true }),
      duration: duration({ default: 1_000, min: 1 }),
    }),
  ),
});
const isRecord = (given: unknown): given is object =>
  typeof given === 'object' && given !== null && !Array.isArray(given);
const QUEUES = 'an object of queue names and their options';
const queuesRow: Option<ReadonlyMap<string, QueueWorkerOptions>> = {
  expected: QUEUES,
  read(given = {}, path) {
    if (!isRecord(given)) throw optionError(path, QUEUES, given);
    return new Map(
      Object.entries(given).map(([name, options]) => {
        if (!isQueueName(name)) throw optionError(path, 'queue names without `:`', name);
        return [name, queueRow.read(options, `${path}.${name}`)];
      }),
    );
  },
};
const table = object({
  connection: connectionOption(),
  prefix: keyPrefix,
  queue: optional(string({ what: 'a queue name without `:`', test: isQueueName })),
  queues: queuesRow,
  worker: feature({ concurrency }),
  spillPath: optional(folderPath),
  spillMaxBytes: bytes({ default: 1024 ** 3, min: 1 }),
  writeTimeoutMs: timeout({ default: 5_000, min: 1 }),
});
