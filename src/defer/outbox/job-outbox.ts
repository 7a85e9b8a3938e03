import { randomUUID } from 'node:crypto';
import type { Capacity } from '../capacity.js';
import type { JobQueue } from '../deferred-work.js';
import type { Origin } from '../counters.js';
import { fromJson, toJson } from './json.js';
import { Outbox, type OutboxItem, type OutboxShared, type Parcel } from './outbox.js';

/** A job for a queue of the application's own. */
interface JobParcel extends Parcel {
  readonly jobName: string;
  /** With the job id in it. */
  readonly options: object;
}

/** Jobs for a queue of the application's own. */
export class JobOutbox extends Outbox<JobParcel> {
  protected readonly what: string;
  protected readonly durable = false;

  constructor(
    private readonly queue: JobQueue,
    capacity: Capacity,
    shared: OutboxShared,
  ) {
    super(capacity, shared);
    this.what = `jobs for queue "${queue.name}"`;
  }

  protected override laneOf(): typeof ONE_LANE {
    return ONE_LANE;
  }

  protected override store(items: readonly OutboxItem<JobParcel>[]): Promise<unknown> {
    const jobs = items.map(({ parcel: { jobName, json, options } }) => {
      return { name: jobName, data: fromJson(json), opts: options };
    });
    return this.queue.addBulk(jobs);
  }
}
const ONE_LANE = { key: '', limits: null };

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
