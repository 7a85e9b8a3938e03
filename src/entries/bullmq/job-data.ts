import { createHash } from 'node:crypto';
import type { DurableJob } from '../../defer/durable/durable-store.js';
import type { BulkJob } from '../../defer/outbox/bulk-queue.js';

/** What a job holds in Redis. The job's id and name stand on the job itself. */
export interface SingleData {
  work: string;
  data: unknown;
  requestId: string | null;
  status: number | null;
  timeoutMs: number;
  at: number;
}

/** One job that holds many items of one class. */
export interface EnvelopeData {
  work: string;
  timeoutMs: number;
  items: EnvelopeItem[];
}

export interface EnvelopeItem {
  id: string;
  /** Left out when undefined. */
  data?: unknown;
  requestId: string | null;
  status: number | null;
  at: number;
}

/**
 * Completed jobs are remembered for a while: a bulk whose answer was lost is sent again, and finds its ids taken.
 * Failed ones stay until somebody looks at them.
 */
const KEEP = { removeOnComplete: { age: 600, count: 10_000 }, removeOnFail: { age: 30 * 24 * 3600, count: 100_000 } };
const BACKOFF = { type: 'exponential', delay: 1_000, jitter: 1 };

/** 128 bits in hexadecimal digits. */
const ID_LENGTH = 32;

export function bulkJobOf(job: DurableJob): BulkJob {
  const { id, name, work, timeoutMs, attempts } = job;
  const json = `{"work":${JSON.stringify(work)},"timeoutMs":${timeoutMs},${fieldsOf(job)}}`;
  return { name, json, opts: optionsOf(id, attempts) };
}

/**
 * Its id comes from all its items: sent again they make the same job, while other items make another, even behind the same
 * first. After a crash a journal's items are put together anew, and what is taken for stored is struck off.
 */
export function envelopeOf(jobs: readonly DurableJob[]): BulkJob {
  const { name, work, timeoutMs, attempts } = jobs[0]!;
  const hash = createHash('sha256');
  for (const { id } of jobs) hash.update(id).update('\n');
  const id = hash.digest('hex').slice(0, ID_LENGTH);
  const items = jobs.map((job) => `{"id":${JSON.stringify(job.id)},${fieldsOf(job)}}`).join();
  const json = `{"work":${JSON.stringify(work)},"timeoutMs":${timeoutMs},"items":[${items}]}`;
  return { name, json, opts: optionsOf(`envelope-${id}`, attempts) };
}

/** Fields of JSON that a job has wherever it stands. By hand: its data is text already. */
function fieldsOf(job: DurableJob): string {
  const { requestId, status, at } = job;
  const json = job.json ?? JSON.stringify(job.data);
  const data = json === undefined ? '' : `"data":${json},`;
  return `${data}"requestId":${JSON.stringify(requestId)},"status":${status},"at":${at}`;
}

function optionsOf(jobId: string, attempts: number): object {
  return attempts > 1 ? { jobId, attempts, backoff: BACKOFF, ...KEEP } : { jobId, attempts, ...KEEP };
}

/** What a job of somebody else's gets: null. */
export function readJobData(data: unknown): SingleData | EnvelopeData | null {
  const given = data as Partial<SingleData & EnvelopeData> | null | undefined;
  return typeof given?.work === 'string' && typeof given.timeoutMs === 'number'
    ? (given as SingleData | EnvelopeData)
    : null;
}
