import { randomUUID } from 'node:crypto';
import { nameOrigin } from '../counters.js';
import type { JobQueue } from '../deferred-work.js';
import { fromJson, toJson } from '../durable/entry.js';
import type { Room } from '../room.js';
import type { Arming } from '../tasks/task.js';
import { OutboxItem, type Parcel } from './outbox-item.js';
import { Outbox, type OutboxShared } from './outbox.js';

/** How long a job is sent again. The buffer is no store: it outlives a failover, no outage of hours. */
const KEPT_MINUTES = 10;

interface JobParcel extends Parcel {
  readonly jobName: string;
  readonly options: object;
}

/** The buffer in front of a queue of the application's own. What the queue refuses for good is counted and reported, no more. */
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
      ...nameOrigin(origin),
      id,
      name: `${this.queue.name}/${jobName}`,
      jobName,
      json: toJson(data, `job "${jobName}" for queue "${this.queue.name}"`),
      options: { ...options, jobId: id },
    });
    return item.takeRoom() ? item : null;
  }

  /** Waits without a deadline: the client may buffer commands while Redis is away, and would buffer each send more. */
  protected override store(items: readonly OutboxItem<JobParcel>[]): Promise<unknown> {
    return this.queue.addBulk(
      items.map(({ parcel: { jobName, json, options } }) => ({ name: jobName, data: fromJson(json), opts: options })),
    );
  }
}
