import { randomUUID } from 'node:crypto';
import type { Capacity } from '../capacity.js';
import type { JobQueue } from '../deferred-work.js';
import type { Origin } from '../request-work.js';
import { fromJson, toJson } from './json.js';
import { Outbox, type Destination, type OutboxShared, type Parcel } from './outbox.js';

/** A job for a queue of the application's own. */
interface JobParcel extends Parcel {
  readonly jobName: string;
  /** With the job id in it. */
  readonly options: object;
}

/** Jobs for the application's own queues: an outbox for each, so that a queue that is dead starves no other. */
export class JobOutboxes {
  private readonly outboxes = new Map<JobQueue, Outbox<JobParcel>>();
  private whyClosed: string | null = null;

  constructor(
    private readonly newCapacity: () => Capacity,
    private readonly shared: OutboxShared,
  ) {}

  of(queue: JobQueue): Outbox<JobParcel> {
    let outbox = this.outboxes.get(queue);
    if (outbox === undefined) {
      outbox = new Outbox(destinationOf(queue), this.newCapacity(), this.shared);
      if (this.whyClosed !== null) outbox.close(this.whyClosed);
      this.outboxes.set(queue, outbox);
    }
    return outbox;
  }

  flush(): void {
    for (const outbox of this.outboxes.values()) outbox.flush();
  }

  /** Stops, and drops what is not stored; returns its names. */
  close(reason: string): string[] {
    this.whyClosed = reason;
    return [...this.outboxes.values()].flatMap((outbox) => outbox.close(reason));
  }
}

/** @throws PERF_ERR_SERIALIZE */
export function jobParcel(
  queue: JobQueue,
  jobName: string,
  data: unknown,
  options: (object & { jobId?: string }) | undefined,
  origin: Origin | null,
): JobParcel {
  const id = options?.jobId ?? randomUUID();
  return {
    id,
    name: `${queue.name}/${jobName}`,
    jobName,
    json: toJson(data, `job "${jobName}" for queue "${queue.name}"`),
    options: { ...options, jobId: id },
    requestId: origin?.id ?? null,
    route: origin?.pattern ?? null,
  };
}

const ONE_LANE = { key: '', limits: null };

function destinationOf(queue: JobQueue): Destination<JobParcel> {
  return {
    what: `jobs for queue "${queue.name}"`,
    durable: false,
    laneOf: () => ONE_LANE,
    send: (items) =>
      queue.addBulk(
        items.map(({ parcel: { jobName, json, options } }) => ({
          name: jobName,
          data: fromJson(json),
          opts: options,
        })),
      ),
  };
}
