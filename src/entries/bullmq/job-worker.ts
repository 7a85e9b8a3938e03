import { setMaxListeners } from 'node:events';
import type { BackoffStrategy, Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { describeReason } from '../../core/reason.js';
import { within } from '../../core/within.js';
import { backoffMs } from '../../core/backoff.js';
import type { DurableStoreHost } from '../../defer/durable/durable-store.js';
import type { Libraries } from './connection.js';
import { readJob, type ReadJob } from './job-data.js';
import { settleAll } from '../../core/settle-all.js';

/** Least time for the last commands to Redis, even past the deadline, milliseconds. */
const LAST_COMMAND_MS = 500;
/** A job whose class this process lacks is delayed by an eighth of its wait so far, within these bounds, times 1 to 2 at random. */
const ELSEWHERE_MS = { least: 1_000, most: 300_000 };
/** A job whose class no worker has had for so long is a dead letter, milliseconds. */
export const UNKNOWN_MS = 3_600_000;
/** How often a job's process may die before the job fails: the job may be the cause. BullMQ's default is 1. */
const MAX_STALLED_COUNT = 10;
/** Beginning of BullMQ's error when it fails a job that no process runs. */
const STALLED = 'job stalled more than';
/** Delay of a job that a shutdown has cut off or not begun, milliseconds. */
const PUT_BACK_MS = 1_000;
/** How soon a worker tries again after Redis was away, or has refused, milliseconds. */
const RETRY_MS = 1_000;
/** Time for aborted jobs to end, milliseconds. */
const ABORT_MS = 100;

export interface QueueWorkerOptions {
  readonly concurrency: number;
  readonly limiter?: { readonly max: number; readonly duration: number } | null;
}

interface WorkerConnection {
  readonly connection: Redis;
  readonly prefix: string;
  readonly skipVersionCheck: boolean;
}

/** Runs the jobs of one queue. */
export class JobWorker {
  private worker: Worker;
  private readonly active = new Set<{ job: Job; token: string | undefined; running: Promise<void> }>();
  private readonly stopping = new AbortController();
  private paused = false;
  /** BullMQ has begun: before that there is nothing to pause, and its `close` would leave errors without a listener. */
  private runs = false;

  constructor(
    private readonly bullmq: Libraries['bullmq'],
    private readonly queueName: string,
    private readonly connection: WorkerConnection,
    private readonly options: QueueWorkerOptions,
    private readonly host: DurableStoreHost,
  ) {
    // Each running job listens to the signal.
    setMaxListeners(0, this.stopping.signal);
    this.worker = this.open(connection.skipVersionCheck);
  }

  private open(skipVersionCheck: boolean): Worker {
    const { bullmq, queueName, host } = this;
    const { concurrency, limiter } = this.options;
    const worker = new bullmq.Worker(queueName, (job: Job, token?: string) => this.process(job, token), {
      connection: this.connection.connection,
      prefix: this.connection.prefix,
      concurrency,
      ...(limiter ? { limiter } : {}),
      autorun: false,
      skipVersionCheck,
      // 15 s otherwise, which would also delay the end of the process.
      runRetryDelay: RETRY_MS,
      maxStalledCount: MAX_STALLED_COUNT,
      settings: { backoffStrategy: boundedBackoff },
    });
    worker.on('failed', (job, error) => {
      const isStalled = error.message.startsWith(STALLED);
      if (job !== undefined && isStalled) host.givenUp?.(readJob(job)?.jobs ?? [], job.attemptsMade, error);
    });
    worker.on('error', this.reportTrouble);
    worker.waitUntilReady().then(
      () => {
        if (this.paused) return;
        this.runs = true;
        worker.run().catch((error: Error) => worker.emit('error', error));
      },
      // Redis may refuse INFO, for example during a long script: a new worker skips it. The old one's connections end with the consumer's.
      () => setTimeout(() => (this.paused ? undefined : (this.worker = this.open(true))), RETRY_MS).unref(),
    );
    return worker;
  }

  private readonly reportTrouble = (error: unknown): void => {
    // A job that was put back has lost its lock: BullMQ emits an error when it still ends.
    if (this.stopping.signal.aborted) return;
    const cause = `worker of queue "${this.queueName}": ${describeReason(error)}`;
    this.host.report(cause, `${cause}. It goes on by itself when Redis is back.`);
  };

  async pause(): Promise<void> {
    this.paused = true;
    if (this.runs) await this.worker.pause(true);
  }

  /** Waits for running jobs until the deadline; then aborts their signals, and puts back those that do not end. */
  async stop(deadlineMs: number): Promise<void> {
    const startedMs = performance.now();
    const leftMs = (): number => Math.max(LAST_COMMAND_MS, deadlineMs - (performance.now() - startedMs));
    await within(leftMs(), () => this.pause());
    await within(deadlineMs, () => this.idle());
    this.stopping.abort();
    await within(ABORT_MS, () => this.idle());
    const left = [...this.active];
    if (left.length > 0) {
      const names = left.map(({ job }) => job.name).join(', ');
      this.host.report('durable jobs were cut off', `${left.length} durable jobs run again elsewhere: ${names}.`);
      // Counts no attempt, and spares the wait for the lock to expire. The delay keeps jobs from this worker, which still listens.
      const putBack = left.map(({ job, token }) => job.moveToDelayed(Date.now() + PUT_BACK_MS, token));
      await within(LAST_COMMAND_MS, () => settleAll(putBack));
    }
    // A job that has ended while Redis was away runs again elsewhere: it is not waited for.
    const closeMs = this.connection.connection.status === 'ready' ? leftMs() : LAST_COMMAND_MS;
    if (this.runs) await within(closeMs, () => this.worker.close(this.active.size > 0));
  }

  private idle(): Promise<unknown> {
    return settleAll(Array.from(this.active, ({ running }) => running));
  }

  private async process(job: Job, token: string | undefined): Promise<void> {
    // A paused worker of BullMQ still gets the job for which it was waiting.
    if (this.paused) return this.putBack(job, token, PUT_BACK_MS);
    const read = readJob(job);
    if (read === null) {
      const cause = `job "${job.name}" on queue "${this.queueName}" is no durable work of nestjs-perf: give bullmqStore() a queue of its own`;
      this.host.report(cause, `${cause}. The job has failed.`);
      throw new this.bullmq.UnrecoverableError(cause);
    }
    const kind = this.host.findKind(read.jobs[0]!.work);
    if (typeof kind === 'object') return this.leaveToOthers(job, token, read, kind.whyNot);
    if (read.isBatch && kind === 'one')
      throw this.makeDead(job, read, 'it is a batch, and its class has no `runBatch`');
    // A shutdown waits for jobs in `active` alone: an `await` here would hide this one from it.
    if (read.unknownSinceMs !== null) void this.markUnknown(job, undefined);
    const running = this.host.run(read.jobs, job.attemptsMade + 1, this.stopping.signal);
    const active = { job, token, running };
    this.active.add(active);
    try {
      return await running;
    } catch (error) {
      // A job that ends because of the shutdown's signal has not failed.
      if (!this.stopping.signal.aborted) throw error;
    } finally {
      this.active.delete(active);
    }
    await this.putBack(job, token, PUT_BACK_MS);
  }

  /** Puts a job back for a process that has its class: a newer one in a deploy, or another service. Counts no attempt. */
  private async leaveToOthers(job: Job, token: string | undefined, read: ReadJob, whyNot: string): Promise<never> {
    const nowMs = Date.now();
    // Any client of Redis may have written a time that never comes.
    const sinceMs = Math.min(read.unknownSinceMs ?? nowMs, nowMs);
    const unknownMs = nowMs - sinceMs;
    if (unknownMs >= UNKNOWN_MS) {
      // A dead letter that is retried gets another hour.
      await this.markUnknown(job, undefined);
      throw this.makeDead(job, read, `no worker has had its class for an hour: ${whyNot}`);
    }
    const cause = `durable work "${job.name}" of queue "${this.queueName}" waits for another process`;
    this.host.report(cause, `${cause}: ${whyNot}. After an hour its jobs are dead letters.`);
    if (read.unknownSinceMs !== sinceMs) await this.markUnknown(job, sinceMs);
    const waitMs = Math.min(ELSEWHERE_MS.most, Math.max(ELSEWHERE_MS.least, unknownMs / 8));
    return this.putBack(job, token, waitMs * (1 + Math.random()));
  }

  /** Undefined: a worker has its class. If Redis refuses, the next worker writes it. */
  private async markUnknown(job: Job, unknownSinceMs: number | undefined): Promise<void> {
    await job.updateData({ ...(job.data as object), unknownSinceMs }).catch(this.reportTrouble);
  }

  /** The error by which BullMQ moves a job to the queue's failed jobs, whatever attempts are left. */
  private makeDead(job: Job, { jobs }: ReadJob, why: string): Error {
    const error = new this.bullmq.UnrecoverableError(why);
    this.host.givenUp?.(jobs, job.attemptsMade + 1, error);
    return error;
  }

  /** Puts a job back without counting an attempt. Always throws the error by which BullMQ knows that a job was delayed. */
  private async putBack(job: Job, token: string | undefined, delayMs: number): Promise<never> {
    // If Redis refuses, the job's lock expires and it runs again; any other error would fail the job.
    await job.moveToDelayed(Date.now() + delayMs, token).catch(this.reportTrouble);
    throw new this.bullmq.DelayedError();
  }
}

const boundedBackoff: BackoffStrategy = (attemptsMade, _type, _error, job) => {
  const { delay: baseMs = 1_000 } = (job?.opts.backoff ?? {}) as { delay?: number };
  const { maxBackoffMs: maxMs = Infinity } = (job?.data ?? {}) as { maxBackoffMs?: number };
  return Math.round(backoffMs(attemptsMade, { baseMs, maxMs }));
};
