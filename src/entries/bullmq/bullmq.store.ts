import type { Queue } from 'bullmq';
import { applicationName } from '../../core/application-package.js';
import { backoffMs } from '../../core/backoff.js';
import { entryOf } from '../../core/entry-of.js';
import { within } from '../../core/within.js';
import { PerfError } from '../../core/perf.error.js';
import { reasonOf } from '../../core/reason.js';
import type { NewDurableJob, DurableStore, DurableStoreHost, SpillOptions } from '../../defer/durable/durable-store.js';
import { needsAnew } from '../redis/connection.js';
import {
  attempted,
  clientOf,
  importBullmq,
  producerConnection,
  reconnect,
  workerConnection,
  type Bullmq,
  type Connection,
  type RedisConnection,
} from './connection.js';
import { makeBatchJob, makeJob } from './job-data.js';
import { JobWorker } from './job-worker.js';
import { alone, table } from './option-table.js';

/** For a last word with Redis, which nothing depends on any more, milliseconds. */
const CLOSE_TIMEOUT_MS = 300;
/** Upper limit of the boot's wait for a refusal, milliseconds: BullMQ's own checks refuse at once. */
const REFUSED_MS = 100;
/** When a queue is made anew to which Redis has refused its first connection. */
const OPEN_AGAIN = { baseMs: 1_000, maxMs: 60_000 };

export interface BullmqStoreOptions {
  /** A URL, ioredis options, or an ioredis client, which is duplicated and never touched otherwise. A `keyPrefix` is not used. */
  connection: RedisConnection;
  /**
   * Begins all keys of the queues, as `prefix` of BullMQ's own options does.
   * @default 'bull'
   */
  prefix?: string;
  /**
   * Name of the BullMQ queue. Give it to one service alone, and to the workers that run its jobs.
   * @default 'nestjs-perf-<name in the application's package.json>', with `-` for `@` and `/`, and with `-<folder>` behind it below `apps/<folder>/` of a monorepo
   */
  queue?: string;
  /**
   * Queues that works ask for by `queue`: how many of their jobs run at a time in this process, and how many may start
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
   * How long an answer waits for the disk, milliseconds. After that a `@DeferWork` route answers 503 with `overflow: 'reject'`, and goes
   * on with its work in memory only with any other. What comes while the disk hangs does not wait for it.
   * @default 5_000
   */
  writeTimeoutMs?: number;
}

/**
 * Durable deferred work on BullMQ 6 or 5: at least once. Redis away, at boot or later, neither delays a request nor stops
 * the application.
 * @throws PERF_ERR_OPTION
 * @example PerfModule.forRoot({ defer: { store: bullmqStore({ connection: { host: 'localhost' } }) } })
 */
export function bullmqStore(options: BullmqStoreOptions): BullmqDurableStore {
  return new BullmqStore(table.read(options, 'bullmqStore'));
}

/** Durable work on BullMQ. */
export interface BullmqDurableStore extends DurableStore {
  /**
   * The BullMQ queue that work travels in, for bull-board and for looking into it: nothing is worked off for it. Of several applications: of the newest.
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
  private readonly attempts = new Map<Queue, Promise<void>>();
  private readonly workers = new Map<string, JobWorker>();
  /** Queues that this application stores work in, or works off. One that is only looked at may be somebody else's. */
  private readonly served = new Set<string>();
  private started: { bullmq: Bullmq; connection: Connection; host: DurableStoreHost } | null = null;
  private working = false;
  private closed = false;
  /** BullMQ 5.40 to 5.55 ask for INFO before they are connected, which fails: from then on, queues wait. */
  private waitsForReady = false;
  private connectWorker: (() => Connection) | null = null;
  private readonly needsAnew = needsAnew(/READONLY|NOSCRIPT/);
  /** That of the application that booted last. */
  private newest: BullmqStore | null = null;

  constructor(
    private readonly options: ReturnType<typeof table.read>,
    private readonly onStarted: (store: BullmqStore) => void = () => {},
  ) {
    const { spillPath: path, spillMaxBytes: maxBytes, writeTimeoutMs } = options;
    this.spill = path === null ? null : { path, maxBytes, writeTimeoutMs };
    this.ownQueue = options.queue ?? defaultQueueName();
    this.prefix = options.prefix ?? 'bull';
  }

  forApplication(): DurableStore {
    return new BullmqStore(this.options, (store) => (this.newest = store));
  }

  async start(host: DurableStoreHost): Promise<void> {
    const { connection } = this.options;
    const bullmq = await importBullmq(connection);
    this.started = { bullmq, connection: producerConnection(connection), host };
    this.serve(this.ownQueue);
    const first = this.open(this.ownQueue);
    // Before anybody holds it, so that nobody holds one that is dead.
    await within(REFUSED_MS, () => clientOf(first)).catch(() => {});
    this.onStarted(this);
  }

  startWorker(): void {
    this.working = true;
    this.serveAll();
  }

  queue(name = this.ownQueue): Queue {
    if (this.newest !== null) return this.newest.queue(name);
    if (this.started === null) {
      throw new PerfError(
        'PERF_ERR_STORE',
        '`store.queue()` works once the application has booted: the queue is made then.',
      );
    }
    return this.queues.get(name) ?? this.open(name);
  }

  async add(jobs: readonly NewDurableJob[], { batch }: { batch: boolean }): Promise<unknown> {
    const name = jobs[0]!.options.queue ?? this.ownQueue;
    if (this.working && !this.served.has(name)) {
      const cause = `queue "${name}" stands on no handler and not in bullmqStore({ queues })`;
      const advice = 'after a restart nobody works it off before something is stored in it again. Add it there.';
      this.started?.host.report(cause, `${cause}: ${advice}`);
    }
    this.serve(name);
    const queue = this.queue(name);
    // One wait for all that is stored meanwhile, since each listens to the client.
    await entryOf(this.attempts, queue, () => attempted(queue).finally(() => this.attempts.delete(queue)));
    try {
      return await queue.addBulk(batch ? [makeBatchJob(jobs)] : jobs.map(makeJob));
    } catch (error) {
      // A transaction's errors stand in its answer, where ioredis' own `reconnectOnError` does not look.
      if (this.needsAnew(error as Error)) await reconnect(queue);
      throw error;
    }
  }

  async pauseWorker(): Promise<void> {
    this.working = false;
    await Promise.all([...this.workers.values()].map((worker) => worker.pause()));
  }

  async stopWorker(deadlineMs: number): Promise<void> {
    this.working = false;
    await Promise.all([...this.workers.values()].map((worker) => worker.stop(deadlineMs)));
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.queues.values()].map(closeQueue));
    this.started?.connection.release();
  }

  private open(name: string, refused = 0): Queue {
    const { bullmq, connection, host } = this.started!;
    const { waitsForReady } = this;
    const queue = new bullmq.Queue(name, {
      connection: connection.options,
      prefix: this.prefix,
      // Without these two, a queue made while Redis is away waits for ever, and so does every `add`.
      skipWaitingForReady: !waitsForReady,
      skipVersionCheck: true,
    });
    queue.on('error', (error) => {
      // Asked too early: no word on Redis.
      if (!waitsForReady && error.message.startsWith("Stream isn't writeable")) return;
      const cause = `Redis of queue "${name}": ${reasonOf(error)}`;
      host.report(cause, `${cause}. Durable work is kept and sent when Redis is back.`);
    });
    this.queues.set(name, queue);
    clientOf(queue).then(
      (client) => {
        this.connectWorker ??= () => workerConnection(this.options.connection, client);
        this.serveAll();
      },
      // BullMQ before 5.38 asks for INFO all the same; once that was refused, the queue never connects.
      () => {
        if (waitsForReady)
          setTimeout(() => this.openAgain(queue, refused + 1), backoffMs(refused + 1, OPEN_AGAIN)).unref();
        else this.openAgain(queue, 0);
      },
    );
    return queue;
  }

  private openAgain(queue: Queue, refused: number): void {
    if (this.closed) return;
    this.waitsForReady = true;
    void closeQueue(queue);
    this.open(queue.name, refused);
  }

  private serveAll(): void {
    if (!this.working) return;
    for (const name of [...this.served, ...this.options.queues.keys(), ...this.started!.host.queues()])
      this.serve(name);
  }

  /** Makes its worker, where and when there are workers. */
  private serve(name: string): void {
    this.served.add(name);
    const { worker, queues } = this.options;
    if (worker === null || !this.working || this.connectWorker === null || this.workers.has(name)) return;
    const { bullmq, host } = this.started!;
    const options = queues.get(name) ?? (name === this.ownQueue ? worker : alone.read(undefined, name));
    this.workers.set(name, new JobWorker(bullmq, name, this.connectWorker, { ...options, prefix: this.prefix }, host));
  }
}

async function closeQueue(queue: Queue): Promise<void> {
  // Before its first connection, which only BullMQ before 5.38 waits for, its errors would have no listener: `release` ends it.
  if (!(await within(CLOSE_TIMEOUT_MS, () => clientOf(queue).catch(() => {})))) return;
  // Redis away: there is nobody to say goodbye to. What remains is to stop reconnecting.
  const closed = await within(CLOSE_TIMEOUT_MS, () => queue.close()).catch(() => false);
  if (!closed) await within(CLOSE_TIMEOUT_MS, () => queue.disconnect()).catch(() => {});
}

/** Services that share a Redis have a queue each. BullMQ allows no colon, and dashboards no slash. */
function defaultQueueName(): string {
  const name = applicationName()?.replaceAll(/[^\w.-]/g, '-');
  return name === undefined ? 'nestjs-perf' : `nestjs-perf-${name}`;
}
