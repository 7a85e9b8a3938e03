import type { Queue } from 'bullmq';
import { boolean, number, object, optional, optionError, string, value, type Option } from '../../core/option.js';
import { within } from '../../core/within.js';
import type { DurableJob, DurableJournal, DurableStore, DurableStoreHost } from '../../defer/durable/durable-store.js';
import { BulkQueue } from '../../defer/outbox/bulk-queue.js';
import { SpillFile } from '../../defer/durable/spill-file.js';
import { producerConnection, workerConnection, type Connection, type RedisConnection } from './connection.js';
import { bulkJobOf, envelopeOf } from './job-data.js';
import { JobWorker } from './job-worker.js';
import { importBullmq } from './peer.js';

/** How long closing may take when Redis does not answer, milliseconds. */
const CLOSE_TIMEOUT_MS = 1_000;

export interface BullmqStoreOptions {
  /** ioredis options, or an ioredis client, which is duplicated and never touched otherwise. */
  connection: RedisConnection;
  /**
   * Name of the BullMQ queue. Give it to this store alone.
   * @default 'nestjs-perf'
   */
  queue?: string;
  /**
   * Whether this process works the jobs off as well, and how many at a time. `false` in a process that only answers
   * requests, when another one imports the same classes with `worker: true`.
   * @default { concurrency: 10 }
   */
  worker?: boolean | { concurrency?: number };
  /**
   * A file (or folder) on a local disk. With it, durable data is on disk before the response's last byte, struck off
   * once Redis has it, and sent again after a crash under the same job ids. One process, one file.
   * @default none
   */
  spillPath?: string;
}

const CONCURRENCY = 10;
const concurrency = object({
  concurrency: number({ default: CONCURRENCY, unit: 'a whole number of jobs', min: 1, integer: true }),
});
const WORKER = '`true`, `false` or an object';
const workerRow: Option<{ concurrency: number } | null> = {
  expected: WORKER,
  read(given, path) {
    if (typeof given === 'boolean' || given === undefined) {
      return boolean({ default: true }).read(given, path) ? { concurrency: CONCURRENCY } : null;
    }
    if (typeof given !== 'object') throw optionError(path, WORKER, given);
    return concurrency.read(given, path);
  },
};
/** A Cluster client is duplicated in another way, and its queue names need hash tags: not supported, so not accepted. */
const isConnection = (given: unknown): boolean =>
  typeof given === 'object' && given !== null && (given as { isCluster?: unknown }).isCluster !== true;
const table = object({
  connection: value<RedisConnection>('ioredis options or an ioredis client of one server (no Cluster)', isConnection),
  queue: string({
    default: 'nestjs-perf',
    what: 'a queue name without `:`',
    test: (name) => name !== '' && !name.includes(':'),
  }),
  worker: workerRow,
  spillPath: optional(string({ default: '', what: 'a path', test: (path) => path !== '' })),
});

/**
 * Durable deferred work on BullMQ 6 or 5: at least once. Redis away, at boot or later, neither delays a request nor stops
 * the application.
 * @throws PERF_ERR_OPTION
 * @example PerfModule.forRoot({ defer: { store: bullmqStore({ connection: { host: 'localhost' } }) } })
 */
export function bullmqStore(options: BullmqStoreOptions): DurableStore {
  return new BullmqStore(table.read(options, 'bullmqStore'));
}

class BullmqStore implements DurableStore {
  readonly name = 'bullmq';
  readonly readsJson = true;
  readonly journal: DurableJournal | null;
  private queue: Queue | null = null;
  /** The same queue, for bulks. */
  private bulks: BulkQueue | null = null;
  private worker: JobWorker | null = null;
  private connection: Connection | null = null;

  constructor(private readonly options: ReturnType<typeof table.read>) {
    this.journal = options.spillPath === null ? null : new SpillFile(options.spillPath);
  }

  async start(host: DurableStoreHost): Promise<void> {
    const { connection, queue: name, worker } = this.options;
    const bullmq = await importBullmq(connection);
    this.connection = producerConnection(connection);
    this.queue = new bullmq.Queue(name, {
      connection: this.connection.options,
      // Without these two, a queue made while Redis is away waits for ever, and so does every `add`.
      skipWaitingForReady: true,
      skipVersionCheck: true,
    });
    this.bulks = new BulkQueue(this.queue);
    this.queue.on('error', (error) => {
      const cause = `Redis of queue "${name}": ${reasonOf(error)}`;
      host.report(cause, `${cause}. Durable work is kept and sent when Redis is back.`);
    });
    if (worker === null) return;
    this.worker = new JobWorker(bullmq, name, workerConnection(connection), worker.concurrency, host);
  }

  add(jobs: readonly DurableJob[], { envelope }: { envelope: boolean }): Promise<unknown> {
    const { bulks } = this;
    if (bulks === null) return Promise.reject(new Error('the store has not been started'));
    return bulks.add(envelope ? [envelopeOf(jobs)] : jobs.map(bulkJobOf));
  }

  async stopWorker(deadlineMs: number): Promise<void> {
    await this.worker?.stop(deadlineMs);
  }

  async close(): Promise<void> {
    const { queue } = this;
    if (queue === null) return;
    let closed = false;
    try {
      closed = await within(CLOSE_TIMEOUT_MS, () => queue.close());
    } catch {
      // Redis is away: there is nobody to say goodbye to. What remains is to stop reconnecting.
    }
    if (!closed) await within(CLOSE_TIMEOUT_MS, () => queue.disconnect());
    this.connection?.release();
  }
}

/** ioredis' AggregateErrors of several addresses have no message of their own. */
function reasonOf(error: Error): string {
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}
