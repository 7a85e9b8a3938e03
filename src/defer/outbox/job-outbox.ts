import { randomUUID } from 'node:crypto';
import { describeOrigin } from '../counters.js';
import type { JobQueue } from '../deferred-work.js';
import { fromJson, toJson } from '../durable/entry.js';
import type { Room } from '../item.js';
import type { Arming } from '../tasks/task.js';
import { Outbox, OutboxItem, type OutboxShared, type Parcel } from './outbox.js';

/** A buffer in memory outlives a failover; an outage of hours needs durable work. */
const KEPT_MINUTES = 10;

interface JobParcel extends Parcel {
  readonly jobName: string;
  readonly options: object;
}

/** The buffer of `addJob()` in front of an application's own queue. A job that the queue refuses for good is reported, but no dead letter. */
export class JobOutbox extends Outbox<JobParcel> {
  constructor(
    private readonly queue: JobQueue,
    room: Room,
    shared: OutboxShared,
  ) {
    super(`jobs for queue "${queue.name}"`, false, room, shared, KEPT_MINUTES);
  }

  /** Null when the policy drops it. @throws PERF_ERR_SERIALIZE, PERF_ERR_DEFER_FULL with `'reject'` */
  arm(jobName: string, data: unknown, options: { jobId?: string } | undefined, origin: Arming['origin']) {
    const id = options?.jobId ?? randomUUID();
    const item = new OutboxItem<JobParcel>(this, {
      ...describeOrigin(origin),
      id,
      name: `${this.queue.name}/${jobName}`,
      jobName,
      json: toJson(data, `job "${jobName}" for queue "${this.queue.name}"`),
      options: { ...options, jobId: id },
    });
    return item.takeRoom() ? item : null;
  }

  /** Without a deadline: a client that buffers commands while Redis is away would buffer each repeated send too. */
  protected override store(items: readonly OutboxItem<JobParcel>[]): Promise<unknown> {
    return this.queue.addBulk(
      items.map(({ parcel: { jobName, json, options } }) => ({ name: jobName, data: fromJson(json), opts: options })),
    );
  }
}
