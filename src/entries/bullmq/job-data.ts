import { createHash } from 'node:crypto';
import type { Job } from 'bullmq';
import type { DurableJob, NewDurableJob } from '../../defer/durable/durable-store.js';

/** What is kept in Redis of one item. What is left out there is null, as in jobs of 0.1.0. */
export interface ItemData {
  /** Of a job on its own: only where BullMQ could not take it as it is. */
  id?: string;
  /** Left out when undefined. */
  data?: unknown;
  requestId: string | null;
  status: number | null;
  at: number;
  traceparent?: string;
  route?: string;
}

/** What all items of a job share. The job's id and name stand on the job itself. */
interface CommonData {
  work: string;
  timeoutMs: number;
  /** Where the waits between attempts are bounded. */
  maxBackoffMs?: number;
}

/**
 * Completed jobs are remembered for a while: a bulk whose answer was lost is sent again, and finds its ids taken.
 * Failed ones stay until somebody looks at them.
 */
const KEEP = { removeOnComplete: { age: 600, count: 10_000 }, removeOnFail: { age: 30 * 24 * 3600, count: 100_000 } };
/** A strategy of our workers: exponential with jitter like BullMQ's own, but bounded. */
export const BOUNDED_BACKOFF = 'nestjs-perf';

export function bulkJobOf(job: NewDurableJob) {
  const { id: _, ...item } = itemOf(job);
  const jobId = jobIdOf(job.id);
  return jobWith(job, jobId, jobId === job.id ? item : { ...item, id: job.id });
}

/**
 * Its id comes from all its items: sent again they make the same job. After a crash the spill's entries are grouped anew, and
 * with an id of the first item alone another group would pass for stored.
 */
export function envelopeOf(jobs: readonly NewDurableJob[]) {
  const ids = jobs.map(({ id }) => `${id}\n`).join('');
  const id = createHash('sha256').update(ids).digest('hex').slice(0, 32);
  return jobWith(jobs[0]!, `envelope-${id}`, { items: jobs.map(itemOf) });
}

function itemOf({ id, data, requestId, status, at, traceparent, route }: NewDurableJob): ItemData {
  const item = { id, data, requestId, status, at };
  return { ...item, ...(traceparent === null ? {} : { traceparent }), ...(route === null ? {} : { route }) };
}

/** BullMQ refuses whole numbers and colons. Different ids stay different. */
function jobIdOf(id: string): string {
  return /^-?\d+$/.test(id) || id.includes(':') || id.startsWith('id-') ? `id-${encodeURIComponent(id)}` : id;
}

function jobWith(job: NewDurableJob, jobId: string, items: ItemData | { items: ItemData[] }) {
  const { name, work, timeoutMs, attempts } = job;
  const { backoffMs, maxBackoffMs, delayMs, priority } = job.options;
  // BullMQ's own strategy knows no bound; what never reaches it needs none, and older workers know that one only.
  const bounded = backoffMs * 2 ** (attempts - 2) > maxBackoffMs;
  const backoff = { type: bounded ? BOUNDED_BACKOFF : 'exponential', delay: backoffMs, jitter: 1 };
  return {
    name,
    data: { work, timeoutMs, ...(bounded ? { maxBackoffMs } : {}), ...items },
    opts: {
      jobId,
      attempts,
      ...(attempts > 1 ? { backoff } : {}),
      ...(delayMs > 0 ? { delay: delayMs } : {}),
      ...(priority > 0 ? { priority } : {}),
      ...KEEP,
    },
  };
}

export type ReadJob = NonNullable<ReturnType<typeof readJob>>;

/** One job for each item, as the host runs them; null for a job of somebody else's. `many`: it is an envelope. */
export function readJob({ id = '', name, data, opts }: Job): { jobs: DurableJob[]; many: boolean } | null {
  const given = data as Partial<CommonData & ItemData & { items: ItemData[] }> | null | undefined;
  if (typeof given?.work !== 'string' || typeof given.timeoutMs !== 'number') return null;
  const common = { name, work: given.work, timeoutMs: given.timeoutMs, attempts: opts.attempts ?? 1 };
  const jobs = (given.items ?? [given as ItemData]).map((item) => ({
    ...common,
    id: item.id ?? id,
    data: item.data,
    requestId: item.requestId,
    status: item.status,
    at: item.at,
    traceparent: item.traceparent ?? null,
    route: item.route ?? null,
  }));
  return { jobs, many: given.items !== undefined };
}
