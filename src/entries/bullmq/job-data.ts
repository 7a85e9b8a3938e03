import { createHash } from 'node:crypto';
import type { NewDurableJob } from '../../defer/durable/durable-store.js';

/** What `Queue.addBulk` takes. */
interface BulkJob {
  readonly name: string;
  readonly data: SingleData | EnvelopeData;
  readonly opts: object;
}

/** What a job holds in Redis. The job's id and name stand on the job itself. */
export interface SingleData {
  work: string;
  data: unknown;
  requestId: string | null;
  status: number | null;
  timeoutMs: number;
  at: number;
  // Left out when there is none, as by 0.1.0.
  traceparent?: string;
  route?: string;
  /** Where BullMQ could not take the job's id as it is. */
  id?: string;
  /** Where the waits between attempts are bounded. */
  maxBackoffMs?: number;
}

/** One job that holds many items of one class. */
export interface EnvelopeData {
  work: string;
  timeoutMs: number;
  items: EnvelopeItem[];
  maxBackoffMs?: number;
}

export interface EnvelopeItem {
  id: string;
  /** Left out when undefined. */
  data?: unknown;
  requestId: string | null;
  status: number | null;
  at: number;
  traceparent?: string;
  route?: string;
}

/**
 * Completed jobs are remembered for a while: a bulk whose answer was lost is sent again, and finds its ids taken.
 * Failed ones stay until somebody looks at them.
 */
const KEEP = { removeOnComplete: { age: 600, count: 10_000 }, removeOnFail: { age: 30 * 24 * 3600, count: 100_000 } };
/** 128 bits in hexadecimal digits. */
const ID_LENGTH = 32;
/** A strategy of our workers: exponential with jitter like BullMQ's own, but bounded. */
export const BOUNDED_BACKOFF = 'nestjs-perf';

export function bulkJobOf(job: NewDurableJob): BulkJob {
  const { id, name, work, timeoutMs, data, requestId, status, at, traceparent, route } = job;
  const jobId = jobIdOf(id);
  const single: SingleData = {
    work,
    timeoutMs,
    data,
    requestId,
    status,
    at,
    ...(traceparent === null ? {} : { traceparent }),
    ...(route === null ? {} : { route }),
    ...(jobId === id ? {} : { id }),
    ...boundOf(job),
  };
  return { name, data: single, opts: optionsOf(jobId, job) };
}

/**
 * Its id comes from all its items: sent again they make the same job, while other items make another, even behind the same
 * first. After a crash a journal's items are put together anew, and what is taken for stored is struck off.
 */
export function envelopeOf(jobs: readonly NewDurableJob[]): BulkJob {
  const first = jobs[0]!;
  const hash = createHash('sha256');
  for (const { id } of jobs) hash.update(id).update('\n');
  const id = hash.digest('hex').slice(0, ID_LENGTH);
  const items = jobs.map(({ id, data, requestId, status, at, traceparent, route }) => ({
    id,
    data,
    requestId,
    status,
    at,
    ...(traceparent === null ? {} : { traceparent }),
    ...(route === null ? {} : { route }),
  }));
  const envelope: EnvelopeData = { work: first.work, timeoutMs: first.timeoutMs, items, ...boundOf(first) };
  return { name: first.name, data: envelope, opts: optionsOf(`envelope-${id}`, first) };
}

/** BullMQ refuses whole numbers and colons. Different ids stay different. */
function jobIdOf(id: string): string {
  return /^-?\d+$/.test(id) || id.includes(':') || id.startsWith('id-') ? `id-${encodeURIComponent(id)}` : id;
}

/** BullMQ's own strategy knows no bound; what never reaches it needs none, and older workers know that one only. */
function boundOf({ attempts, options: { backoffMs, maxBackoffMs } }: NewDurableJob): { maxBackoffMs?: number } {
  return backoffMs * 2 ** (attempts - 2) > maxBackoffMs ? { maxBackoffMs } : {};
}

function optionsOf(jobId: string, job: NewDurableJob): object {
  const { attempts, options } = job;
  const bounded = boundOf(job).maxBackoffMs !== undefined;
  const type = bounded ? BOUNDED_BACKOFF : 'exponential';
  return {
    jobId,
    attempts,
    ...(attempts > 1 ? { backoff: { type, delay: options.backoffMs, jitter: 1 } } : {}),
    ...(options.delayMs > 0 ? { delay: options.delayMs } : {}),
    ...(options.priority > 0 ? { priority: options.priority } : {}),
    ...KEEP,
  };
}

/** What a job of somebody else's gets: null. */
export function readJobData(data: unknown): SingleData | EnvelopeData | null {
  const given = data as Partial<SingleData & EnvelopeData> | null | undefined;
  return typeof given?.work === 'string' && typeof given.timeoutMs === 'number'
    ? (given as SingleData | EnvelopeData)
    : null;
}
