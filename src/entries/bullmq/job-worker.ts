import type { Job, Worker } from 'bullmq';
import { within } from '../../core/within.js';
import type { DurableStoreHost } from '../../defer/durable/durable-store.js';
import type { Connection } from './connection.js';
import { openEnvelope } from './envelope.js';
import { readJobData } from './job-data.js';
import type { Bullmq } from './peer.js';

/** For a last word with Redis when the deadline has passed already, milliseconds. */
const LAST_WORD_MS = 500;

/** Works durable jobs off in this process. */
export class JobWorker {
  private readonly worker: Worker;
  private readonly active = new Map<string, string>();
  private waiters: (() => void)[] = [];

  constructor(
    bullmq: Bullmq,
    private readonly queueName: string,
    private readonly connection: Connection,
    concurrency: number,
    private readonly host: DurableStoreHost,
  ) {
    this.worker = new bullmq.Worker(queueName, (job: Job) => this.process(job), {
      connection: connection.options,
      concurrency,
      // How soon it asks again after Redis was away; 15 s otherwise, which would also hold up the end of the process.
      runRetryDelay: 1_000,
    });
    this.worker.on('error', (error) => {
      const cause = `worker of queue "${queueName}": ${error.message || error.name}`;
      host.report(cause, `${cause}. It goes on by itself when Redis is back.`);
    });
  }

  /**
   * Takes no new job and waits for those that run, until the deadline. What is cut off is taken over by another worker,
   * or by this one at its next start, because its lock expires.
   */
  async stop(deadlineMs: number): Promise<void> {
    const startedMs = performance.now();
    const leftMs = (): number => Math.max(LAST_WORD_MS, deadlineMs - (performance.now() - startedMs));
    await within(leftMs(), () => this.worker.pause(true));
    await within(deadlineMs, () => this.idle());
    if (this.active.size > 0) {
      const names = [...this.active.values()].join(', ');
      this.host.report('durable jobs were cut off', `${this.active.size} durable jobs run again elsewhere: ${names}.`);
    }
    const force = this.active.size > 0;
    const closed = await within(leftMs(), () => this.worker.close(force));
    if (!closed) await within(LAST_WORD_MS, () => this.worker.disconnect());
    this.connection.release();
  }

  private idle(): Promise<void> {
    if (this.active.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  private async process(job: Job): Promise<void> {
    const data = readJobData(job.data);
    if (data === null) {
      throw new Error(
        `job "${job.name}" on queue "${this.queueName}" is no durable work of nestjs-perf: give bullmqStore() a queue of its own`,
      );
    }
    const id = job.id ?? '';
    this.active.set(id, job.name);
    try {
      if ('items' in data) await openEnvelope(job, data, this.host);
      else {
        const attempts = job.opts.attempts ?? 1;
        await this.host.run({ ...data, id, name: job.name, attempts }, job.attemptsMade + 1);
      }
    } finally {
      this.active.delete(id);
      if (this.active.size === 0) for (const wake of this.waiters.splice(0)) wake();
    }
  }
}
