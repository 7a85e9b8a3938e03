import { setMaxListeners } from 'node:events';
import type { BackoffStrategy, Job, Worker } from 'bullmq';
import { reasonOf } from '../../core/reason.js';
import { within } from '../../core/within.js';
import { backoffMs } from '../../core/backoff.js';
import type { DurableStoreHost, WorkKind } from '../../defer/durable/durable-store.js';
import type { Bullmq, Connection } from './connection.js';
import { BOUNDED_BACKOFF, readJob, type ReadJob } from './job-data.js';
import { settleAll } from '../../core/settle-all.js';

/** For a last word with Redis when the deadline has passed already, milliseconds. */
const LAST_WORD_MS = 500;
/**
 * When a job whose class this process does not have is looked at again, milliseconds: soon at first, since each look finds the
 * right one of two services in half of all cases, and then ever less often.
 */
const ELSEWHERE_MS = { first: 1_000, next: 5_000, last: 300_000 };
/** After so long without a worker that has its class, a job is a dead letter, milliseconds. */
export const UNKNOWN_MS = 3_600_000;
/**
 * How often a job may lose its process (SIGKILL, out of memory) before it counts as failed. BullMQ's own is once: two
 * unlucky deploys, and work with attempts left is over. Bounded, because the job may be what kills them.
 */
const MAX_STALLED_COUNT = 10;
/** When a job that was cut off at shutdown, or came too late for it, runs again, milliseconds. */
const PUT_BACK_MS = 1_000;
/** How soon Redis is asked again that was away, or has refused, milliseconds. */
const RETRY_MS = 1_000;
/** For jobs to end that were told to, milliseconds. */
const ABORT_MS = 100;

export interface QueueWorkerOptions {
  readonly concurrency: number;
  readonly limiter?: { readonly max: number; readonly duration: number } | null;
}

export class JobWorker {
  private worker: Worker;
  private connection!: Connection;
  /** Ends the one before, to which INFO was refused, say; not while one of its connections still waits for that: BullMQ 5 minds. */
  private endRefused = (): void => {};
  private readonly active = new Set<{ job: Job; token: string | undefined; running: Promise<void> }>();
  /** Jobs that have ended and that Redis has not been told of, in their order. */
  private readonly untold = new Set<string | undefined>();
  /** Jobs that were given to this process; BullMQ fails others by itself. */
  private readonly given = new WeakSet<Job>();
  private readonly stopping = new AbortController();
  private paused = false;
  /** BullMQ works jobs off; before that there is nothing to pause, and its `close` would leave its errors without a listener. */
  private runs = false;

  constructor(
    private readonly bullmq: Bullmq,
    private readonly queueName: string,
    private readonly connect: () => Connection,
    private readonly options: QueueWorkerOptions & { readonly prefix: string },
    private readonly host: DurableStoreHost,
  ) {
    // All that run at a time listen to it.
    setMaxListeners(0, this.stopping.signal);
    this.worker = this.open(false);
  }

  /** Runs once Redis has told its version: a worker to which INFO is refused would ask again for ever, and give up no turn. */
  private open(skipVersionCheck: boolean): Worker {
    const { bullmq, queueName, host } = this;
    const { concurrency, limiter, prefix } = this.options;
    this.connection = this.connect();
    const worker = new bullmq.Worker(queueName, (job: Job, token?: string) => this.process(job, token), {
      connection: this.connection.options,
      prefix,
      concurrency,
      ...(limiter ? { limiter } : {}),
      autorun: false,
      skipVersionCheck,
      // How soon it asks again after Redis was away; 15 s otherwise, which would also hold up the end of the process.
      runRetryDelay: RETRY_MS,
      maxStalledCount: MAX_STALLED_COUNT,
      settings: { backoffStrategy: boundedBackoff },
    });
    worker.on('completed', ({ id }) => this.told(id));
    worker.on('failed', (job, error) => {
      this.told(job?.id);
      if (job !== undefined && !this.given.has(job)) host.givenUp?.(readJob(job)?.jobs ?? [], job.attemptsMade, error);
    });
    worker.on('error', (error) => {
      // A job that was put back has no lock any more, when it ends after all.
      if (this.stopping.signal.aborted) return;
      const cause = `worker of queue "${queueName}": ${reasonOf(error)}`;
      host.report(cause, `${cause}. It goes on by itself when Redis is back.`);
    });
    worker.waitUntilReady().then(
      () => {
        if (this.paused) return;
        this.runs = true;
        worker.run().catch((error: Error) => worker.emit('error', error));
      },
      () => setTimeout(() => this.openAgain(), RETRY_MS).unref(),
    );
    return worker;
  }

  private openAgain(): void {
    if (this.paused) return;
    this.endRefused();
    this.endRefused = this.connection.release;
    this.worker = this.open(true);
  }

  async pause(): Promise<void> {
    this.paused = true;
    if (this.runs) await this.worker.pause(true);
  }

  /**
   * Takes no new job and waits for those that run, until the deadline; then their signals abort. What is cut off is put
   * back, for another worker or for this one at its next start.
   */
  async stop(deadlineMs: number): Promise<void> {
    const startedMs = performance.now();
    const leftMs = (): number => Math.max(LAST_WORD_MS, deadlineMs - (performance.now() - startedMs));
    await within(leftMs(), () => this.pause());
    await within(deadlineMs, () => this.idle());
    this.stopping.abort();
    await within(ABORT_MS, () => this.idle());
    const left = [...this.active];
    if (left.length > 0) {
      const names = left.map(({ job }) => job.name).join(', ');
      this.host.report('durable jobs were cut off', `${left.length} durable jobs run again elsewhere: ${names}.`);
      // Without an attempt, and soon rather than when its lock expires; but not to this worker, which still listens.
      const putBack = left.map(({ job, token }) => job.moveToDelayed(Date.now() + PUT_BACK_MS, token));
      await within(LAST_WORD_MS, () => settleAll(putBack));
    }
    this.endRefused();
    // With nothing to tell, Redis is waited for only as long as it takes when it is there.
    const hasNews = this.active.size + this.untold.size > 0;
    if (this.runs) await within(hasNews ? leftMs() : LAST_WORD_MS, () => this.worker.close(this.active.size > 0));
    this.connection.release();
  }

  private idle(): Promise<unknown> {
    return settleAll(Array.from(this.active, ({ running }) => running));
  }

  /** Redis knows that this job has ended, so it has answered for those before it too; one that lost its lock emits no event. */
  private told(id: string | undefined): void {
    if (!this.untold.has(id)) return;
    for (const other of this.untold) {
      this.untold.delete(other);
      if (other === id) return;
    }
  }

  private async process(job: Job, token: string | undefined): Promise<void> {
    // BullMQ still takes the job for which it was waiting when it was paused.
    if (this.paused) return this.putBack(job, token, PUT_BACK_MS);
    this.given.add(job);
    const read = readJob(job);
    if (read === null) {
      const cause = `job "${job.name}" on queue "${this.queueName}" is no durable work of nestjs-perf: give bullmqStore() a queue of its own`;
      this.host.report(cause, `${cause}. The job has failed.`);
      throw new this.bullmq.UnrecoverableError(cause);
    }
    const kind = this.host.kindOf(read.jobs[0]!.work);
    if (typeof kind === 'object') return this.leaveToOthers(job, token, read, kind.whyNot);
    if (read.isBatch && kind === 'one')
      throw this.makeDead(job, read, 'it is a batch, and its class has no `runBatch`');
    const active = { job, token, running: this.run(job, kind, read) };
    this.active.add(active);
    try {
      return await active.running;
    } catch (error) {
      // It has heeded the signal of the shutdown, which is no failure.
      if (!this.stopping.signal.aborted) throw error;
    } finally {
      this.active.delete(active);
      this.untold.add(job.id);
    }
    await this.putBack(job, token, PUT_BACK_MS);
  }

  private async run(job: Job, kind: WorkKind, { jobs }: ReadJob): Promise<void> {
    const { host, stopping } = this;
    const attempt = job.attemptsMade + 1;
    if (kind === 'batch') await host.runBatch(jobs, attempt, stopping.signal);
    else await host.run(jobs[0]!, attempt, stopping.signal);
  }

  /** For a process that has its class: a newer one in a deploy, or another service. No attempt is counted. */
  private async leaveToOthers(job: Job, token: string | undefined, read: ReadJob, whyNot: string): Promise<never> {
    const nowMs = Date.now();
    const sinceMs = read.unknownSinceMs ?? nowMs;
    const unknownMs = nowMs - sinceMs;
    if (unknownMs >= UNKNOWN_MS) throw this.makeDead(job, read, `no worker has had its class for an hour: ${whyNot}`);
    const cause = `durable work "${job.name}" of queue "${this.queueName}" waits for another process`;
    this.host.report(cause, `${cause}: ${whyNot}. After an hour its jobs are dead letters.`);
    const { first, next, last } = ELSEWHERE_MS;
    let waitMs = Math.min(last, Math.max(next, unknownMs / 8));
    if (read.unknownSinceMs === null) {
      await job.updateData({ ...(job.data as object), unknownSinceMs: sinceMs });
      waitMs = first;
    }
    return this.putBack(job, token, waitMs * (1 + Math.random()));
  }

  /** It is among the queue's failed jobs then, whatever attempts are left. */
  private makeDead(job: Job, { jobs }: ReadJob, why: string): Error {
    const error = new this.bullmq.UnrecoverableError(why);
    this.host.givenUp?.(jobs, job.attemptsMade + 1, error);
    return error;
  }

  /** For another process, or for later: burns no attempt. Always throws what tells BullMQ so. */
  private async putBack(job: Job, token: string | undefined, delayMs: number): Promise<never> {
    await job.moveToDelayed(Date.now() + delayMs, token);
    this.told(job.id);
    throw new this.bullmq.DelayedError();
  }
}

const boundedBackoff: BackoffStrategy = (attemptsMade, type, _error, job) => {
  const { delay: baseMs = 1_000 } = (job?.opts.backoff ?? {}) as { delay?: number };
  const { maxBackoffMs: maxMs = Infinity } = (job?.data ?? {}) as { maxBackoffMs?: number };
  return type === BOUNDED_BACKOFF ? Math.round(backoffMs(attemptsMade, { baseMs, maxMs })) : baseMs;
};
