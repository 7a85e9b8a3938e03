import type { Job, Worker } from 'bullmq';
import { reasonOf } from '../../core/reason.js';
import { within } from '../../core/within.js';
import { backoffMs } from '../../defer/backoff.js';
import type { DurableStoreHost } from '../../defer/durable/durable-store.js';
import type { Connection } from './connection.js';
import { openEnvelope } from './envelope.js';
import { BOUNDED_BACKOFF, readJob } from './job-data.js';
import type { Bullmq } from './peer.js';

/** For a last word with Redis when the deadline has passed already, milliseconds. */
const LAST_WORD_MS = 500;
/** When a job is looked at again whose class this process does not have, milliseconds: by a newer process, or the right service. */
const ELSEWHERE_MS = 5_000;
/**
 * How often a job may lose its process (SIGKILL, out of memory) before it counts as failed. BullMQ's own is once: two
 * unlucky deploys, and work with attempts left is over. Bounded, because the job may be what kills them.
 */
const MAX_STALLED_COUNT = 10;
/** When a job that was cut off at shutdown, or came too late for it, runs again, milliseconds. */
const PUT_BACK_MS = 1_000;
/** For jobs to end that were told to, and for connections to close that may never have been made, milliseconds. */
const ABORT_MS = 100;

export interface QueueWorkerOptions {
  readonly concurrency: number;
  readonly limiter?: { readonly max: number; readonly duration: number } | null;
}

/** Works the jobs of one queue off in this process. */
export class JobWorker {
  private readonly worker: Worker;
  private readonly active = new Map<string, { readonly job: Job; readonly token: string | undefined }>();
  /** Jobs whose end Redis has not been told of yet. */
  private readonly untold = new Set<string>();
  private readonly stopping = new AbortController();
  private paused = false;
  private waiters: (() => void)[] = [];

  constructor(
    private readonly bullmq: Bullmq,
    private readonly queueName: string,
    private readonly connection: Connection,
    { concurrency, limiter }: QueueWorkerOptions,
    private readonly host: DurableStoreHost,
  ) {
    this.worker = new bullmq.Worker(queueName, (job: Job, token?: string) => this.process(job, token), {
      connection: connection.options,
      concurrency,
      ...(limiter ? { limiter } : {}),
      // How soon it asks again after Redis was away; 15 s otherwise, which would also hold up the end of the process.
      runRetryDelay: 1_000,
      maxStalledCount: MAX_STALLED_COUNT,
      settings: { backoffStrategy: boundedBackoff },
    });
    this.worker.on('completed', ({ id }) => this.untold.delete(id ?? ''));
    this.worker.on('failed', (job) => this.untold.delete(job?.id ?? ''));
    this.worker.on('error', (error) => {
      // A job that was put back has no lock any more, when it ends after all.
      if (this.stopping.signal.aborted) return;
      const cause = `worker of queue "${queueName}": ${reasonOf(error)}`;
      host.report(cause, `${cause}. It goes on by itself when Redis is back.`);
    });
  }

  /** Takes no new job. */
  async pause(): Promise<void> {
    this.paused = true;
    await this.worker.pause(true);
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
    if (this.active.size > 0) await within(ABORT_MS, () => this.idle());
    if (this.active.size > 0) {
      const left = [...this.active.values()];
      const names = left.map(({ job }) => job.name).join(', ');
      this.host.report('durable jobs were cut off', `${left.length} durable jobs run again elsewhere: ${names}.`);
      // Without an attempt, and soon rather than when its lock expires; but not to this worker, which still listens.
      const putBack = left.map(({ job, token }) => job.moveToDelayed(Date.now() + PUT_BACK_MS, token));
      await within(LAST_WORD_MS, () => Promise.allSettled(putBack));
    }
    const force = this.active.size > 0;
    // With nothing to tell, Redis is waited for only as long as it takes when it is there.
    const closed = await within(this.untold.size === 0 ? LAST_WORD_MS : leftMs(), () => this.worker.close(force));
    this.connection.release();
    if (!closed) await within(ABORT_MS, () => this.worker.disconnect());
  }

  private idle(): Promise<void> {
    if (this.active.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  private async process(job: Job, token: string | undefined): Promise<void> {
    // BullMQ still takes the job for which it was waiting when it was paused.
    if (this.paused) await this.putBack(job, token, PUT_BACK_MS);
    const read = readJob(job);
    if (read === null) {
      throw new Error(
        `job "${job.name}" on queue "${this.queueName}" is no durable work of nestjs-perf: give bullmqStore() a queue of its own`,
      );
    }
    const { jobs, many } = read;
    const kind = this.host.kindOf(jobs[0]!.work);
    if (typeof kind === 'object') {
      const cause = `a durable job of queue "${this.queueName}" waits for another process: ${kind.whyNot}`;
      this.host.report(cause, cause);
      await this.putBack(job, token, ELSEWHERE_MS * (1 + Math.random()));
    }
    const id = job.id ?? '';
    this.active.set(id, { job, token });
    this.untold.add(id);
    const attempt = job.attemptsMade + 1;
    const { signal } = this.stopping;
    let done = true;
    try {
      if (!many) await this.host.run(jobs[0]!, attempt, signal);
      else if (kind === 'batch') await this.host.runBatch(jobs, attempt, signal);
      else done = await openEnvelope(job, jobs, this.host, () => this.paused, signal);
    } finally {
      this.active.delete(id);
      if (this.active.size === 0) for (const wake of this.waiters.splice(0)) wake();
    }
    // It stopped halfway, because the worker stops.
    if (!done) await this.putBack(job, token, PUT_BACK_MS);
  }

  /** For another process, or for later: burns no attempt. Always throws what tells BullMQ so. */
  private async putBack(job: Job, token: string | undefined, delayMs: number): Promise<never> {
    await job.moveToDelayed(Date.now() + delayMs, token);
    this.untold.delete(job.id ?? '');
    throw new this.bullmq.DelayedError();
  }
}

function boundedBackoff(
  attemptsMade: number,
  type?: string,
  _error?: Error,
  job?: { data: unknown; opts: { backoff?: number | { delay?: number } } },
): number {
  const backoff = job?.opts.backoff;
  const { delay = 1_000 } = typeof backoff === 'object' ? backoff : {};
  const { maxBackoffMs = Infinity } = (job?.data ?? {}) as { maxBackoffMs?: number };
  if (type !== BOUNDED_BACKOFF) return delay;
  return Math.round(backoffMs(attemptsMade, { baseMs: delay, maxMs: maxBackoffMs }));
}
