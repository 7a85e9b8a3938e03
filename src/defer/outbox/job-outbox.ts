import type { JobQueue } from '../deferred-work.js';
import { BulkQueue, type BulkJob } from './bulk-queue.js';
import { BulkSender, type BatchLimits } from './bulk-sender.js';
import { reasonOf, type DeferLedger, type Ended } from '../ledger.js';
import type { Armed } from '../request-tasks.js';
import type { Room } from '../room.js';

/** A job of the user's own queue that waits for its response, then for its bulk. */
export class BufferedJob implements Armed, BulkJob {
  readonly when = null;
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = 0;

  constructor(
    readonly queue: JobQueue,
    readonly name: string,
    /** JSON, taken when the job was armed. */
    readonly json: string | undefined,
    /** With the job id in it. */
    readonly opts: object,
    /** For the record; null when none is wanted. */
    readonly requestId: string | null,
    private readonly outbox: JobOutbox,
  ) {}

  commit(): void {
    this.outbox.add(this);
  }

  discard(): void {
    this.outbox.discard();
  }
}

/** How the retries of jobs are told. */
export type ReportCause = (cause: string, message: string) => void;

/** Jobs of the user's own queues, micro-batched per queue, in a buffer of bounded size. Each item already has its room. */
export class JobOutbox {
  private readonly senders = new Map<JobQueue, BulkSender<BufferedJob>>();

  constructor(
    private readonly limits: BatchLimits,
    private readonly room: Room,
    private readonly ledger: DeferLedger,
    private readonly report: ReportCause,
  ) {}

  add(job: BufferedJob): void {
    job.acceptedMs = performance.now();
    this.ledger.buffer();
    let sender = this.senders.get(job.queue);
    if (sender === undefined) {
      sender = this.senderFor(job.queue);
      this.senders.set(job.queue, sender);
    }
    sender.add(job);
  }

  /** Gives back the room of a job that need not be sent. */
  discard(): void {
    this.room.release();
  }

  /** Drops a job that has waited longest in its queue; false when all are on their way. */
  dropOldest(): boolean {
    for (const sender of this.senders.values()) {
      const job = sender.takeOldest();
      if (job === undefined) continue;
      this.room.release();
      this.ledger.drop(endedOf(job, 1, 0), 'newer work took its place', true);
      return true;
    }
    return false;
  }

  flush(): void {
    for (const sender of this.senders.values()) sender.flush();
  }

  /** Stops, and drops what is not stored; returns its names. */
  close(reason: string): string[] {
    const names: string[] = [];
    for (const sender of this.senders.values()) {
      for (const job of sender.close()) {
        const ended = endedOf(job, 1, 0);
        names.push(ended.name);
        this.room.release();
        this.ledger.drop(ended, reason, true);
      }
    }
    return names;
  }

  private senderFor(queue: JobQueue): BulkSender<BufferedJob> {
    const bulks = new BulkQueue(queue);
    return new BulkSender<BufferedJob>(this.limits, {
      send: (jobs) => bulks.add(jobs),
      stored: (jobs, sends, sentMs) => {
        this.room.release(jobs.length);
        if (this.ledger.records) for (const job of jobs) this.ledger.completed(endedOf(job, sends, sentMs));
        this.ledger.store(jobs.length);
      },
      refused: (job, sends, error) => {
        this.room.release();
        this.ledger.refuse(endedOf(job, sends, 0), error);
      },
      retried: (jobs, error) => {
        this.ledger.resend(jobs.length);
        const cause = `jobs for queue "${queue.name}" could not be stored: ${reasonOf(error)}`;
        this.report(cause, `${cause}. They are kept and sent again under the same ids.`);
      },
    });
  }
}

function endedOf(job: BufferedJob, attempt: number, runMs: number): Ended {
  return {
    name: `${job.queue.name}/${job.name}`,
    requestId: job.requestId,
    waitMs: performance.now() - runMs - job.acceptedMs,
    runMs,
    attempt,
  };
}
