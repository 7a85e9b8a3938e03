import type { JobQueue } from '../deferred-work.js';
import { BulkSender, type BatchLimits } from './bulk-sender.js';
import { reasonOf, type DeferLedger, type Ended } from '../ledger.js';
import type { Armed } from '../request-tasks.js';
import type { Room } from '../room.js';
import { FULL_OF_REJECTS, type Rejects } from './rejects.js';
import { bytesOf, fromJson } from './serialize.js';

/** How the retries of jobs are told. */
export type ReportCause = (cause: string, message: string) => void;

/** A job of the user's own queue that waits for its response, then for its bulk. */
export class BufferedJob implements Armed {
  readonly when = null;
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = 0;

  constructor(
    readonly lane: JobLane,
    readonly name: string,
    /** JSON, taken when the job was armed. */
    readonly json: string | undefined,
    /** With the job id in it. */
    readonly opts: object & { readonly jobId: string },
    /** For the record; null when none is wanted. */
    readonly requestId: string | null,
    readonly route: string | null,
  ) {}

  get bytes(): number {
    return bytesOf(this.json);
  }

  commit(): void {
    this.lane.add(this);
  }

  discard(): void {
    this.lane.room.release(this.bytes);
  }
}

/** What outboxes share. */
export interface Shared {
  readonly limits: BatchLimits;
  readonly ledger: DeferLedger;
  readonly rejects: Rejects;
  readonly report: ReportCause;
}

/** Jobs for one of the user's queues, micro-batched, in a buffer of its own: a queue that is dead starves no other. */
export class JobLane {
  private readonly sender: BulkSender<BufferedJob>;
  private closed = false;

  constructor(
    readonly queue: JobQueue,
    readonly room: Room,
    private readonly shared: Shared,
  ) {
    const { limits, ledger, report } = shared;
    this.sender = new BulkSender<BufferedJob>(limits, {
      send: (jobs) => queue.addBulk(jobs.map(({ name, json, opts }) => ({ name, data: fromJson(json), opts }))),
      stored: (jobs, sends, sentMs) => {
        const bytes = jobs.reduce((sum, job) => sum + job.bytes, 0);
        room.release(bytes, jobs.length);
        if (ledger.records) for (const job of jobs) ledger.completed(endedOf(job, sends, sentMs));
        ledger.store(jobs.length);
      },
      refused: (job, sends, error) => {
        this.reject(job, reasonOf(error));
        room.release(job.bytes);
        ledger.refuse(endedOf(job, sends, 0), error);
      },
      retried: (jobs, error) => {
        ledger.resend(jobs.length);
        const cause = `jobs for queue "${queue.name}" could not be stored: ${reasonOf(error)}`;
        report(cause, `${cause}. They are kept and sent again under the same ids.`);
      },
    });
  }

  /** Takes over a job that has its room. */
  add(job: BufferedJob): void {
    job.acceptedMs = performance.now();
    this.shared.ledger.buffer();
    if (this.closed) this.drop(job, 'the application has closed');
    else this.sender.add(job);
  }

  /** Drops the job that has waited longest; false when all are on their way. */
  dropOldest(): boolean {
    const job = this.sender.takeOldest();
    if (job === undefined) return false;
    this.drop(job, 'newer work took its place');
    return true;
  }

  flush(): void {
    this.sender.flush();
  }

  /** Stops, and drops what is not stored; returns its names. */
  close(reason: string): string[] {
    this.closed = true;
    const left = this.sender.close();
    for (const job of left) this.drop(job, reason);
    return left.map(labelOf);
  }

  private drop(job: BufferedJob, why: string): void {
    this.room.release(job.bytes);
    this.shared.ledger.drop(endedOf(job, 1, 0), why, true);
  }

  private reject(job: BufferedJob, error: string): void {
    const work = {
      id: job.opts.jobId,
      name: labelOf(job),
      data: fromJson(job.json),
      error,
      rejectedAt: Date.now(),
    };
    const gone = this.shared.rejects.add(work, () => {
      if (!this.room.take(job.bytes)) return false;
      this.add(job);
      return true;
    });
    if (gone !== null) this.shared.report(FULL_OF_REJECTS, `${FULL_OF_REJECTS}: the oldest, "${gone}", was let go.`);
  }
}

/** Jobs of the user's own queues. */
export class JobOutbox {
  private readonly lanes = new Map<JobQueue, JobLane>();

  constructor(
    private readonly shared: Shared,
    private readonly newRoom: () => Room,
  ) {}

  laneOf(queue: JobQueue): JobLane {
    let lane = this.lanes.get(queue);
    if (lane === undefined) {
      lane = new JobLane(queue, this.newRoom(), this.shared);
      this.lanes.set(queue, lane);
    }
    return lane;
  }

  flush(): void {
    for (const lane of this.lanes.values()) lane.flush();
  }

  /** Stops, and drops what is not stored; returns its names. */
  close(reason: string): string[] {
    return [...this.lanes.values()].flatMap((lane) => lane.close(reason));
  }
}

const labelOf = ({ lane, name }: BufferedJob): string => `${lane.queue.name}/${name}`;

function endedOf(job: BufferedJob, attempt: number, runMs: number): Ended {
  return {
    name: labelOf(job),
    requestId: job.requestId,
    route: job.route,
    waitMs: performance.now() - runMs - job.acceptedMs,
    runMs,
    attempt,
  };
}
