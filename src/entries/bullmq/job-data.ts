import type { DurableJob } from '../../defer/durable/durable-store.js';

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
  /** The item's data: text, since it is text already when it gets here. Left out when undefined. */
  json: string | undefined;
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

interface BulkJob {
  name: string;
  data: SingleData | EnvelopeData;
  opts: object;
}

export function bulkJobOf(job: DurableJob): BulkJob {
  const { id, name, work, data, requestId, status, timeoutMs, attempts, at } = job;
  return { name, data: { work, data, requestId, status, timeoutMs, at }, opts: optionsOf(id, attempts) };
}

/** Its id comes from its first item, so the same items sent again make the same job. */
export function envelopeOf(jobs: readonly DurableJob[]): BulkJob {
  const first = jobs[0]!;
  const items = jobs.map((job) => {
    const { id, requestId, status, at } = job;
    return { id, json: job.json ?? JSON.stringify(job.data), requestId, status, at };
  });
  return {
    name: first.name,
    data: { work: first.work, timeoutMs: first.timeoutMs, items },
    opts: optionsOf(`envelope-${first.id}`, first.attempts),
  };
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
