import { createHash } from 'node:crypto';
import type { Job } from 'bullmq';
import { MAX_TIMER_MS } from '../../core/clock.js';
import type { DurableJob, NewDurableJob } from '../../defer/durable/durable-store.js';

/** The fields of one item in Redis. Optional fields are null when they are left out. */
export interface ItemData {
  /** Left out where the job has it as its own id. */
  id?: string;
  data?: unknown;
  requestId: string | null;
  status: number | null;
  at: number;
  traceparent?: string;
  route?: string;
}

/** Fields that all items of a job share, besides the job's own id and name. */
interface CommonData {
  work: string;
  timeoutMs: number;
  /** Upper limit of the wait between attempts, milliseconds; left out where there is one attempt. */
  maxBackoffMs?: number;
  /** Set by the first worker whose application lacks the class. */
  unknownSinceMs?: number;
}

/** A bulk whose answer was lost is sent again after 30 s: completed jobs must still hold their ids then, up to 1,500 a second. */
const KEEP = { removeOnComplete: { age: 600, count: 50_000 }, removeOnFail: { age: 30 * 24 * 3600, count: 100_000 } };
/** Name of the strategy that our workers register: BullMQ's own exponential one has no upper limit. */
const BOUNDED_BACKOFF = 'nestjs-perf';

export function makeJob(job: NewDurableJob) {
  const { id: _, ...item } = makeItem(job);
  const jobId = makeJobId(job.id);
  return jobWith(job, jobId, jobId === job.id ? item : { ...item, id: job.id });
}

/** The id is a hash of all item ids: after a crash items may be grouped anew, and another group must not pass for stored. */
export function makeBatchJob(jobs: readonly NewDurableJob[]) {
  const ids = jobs.map(({ id }) => `${id}\n`).join('');
  const id = createHash('sha256').update(ids).digest('hex').slice(0, 32);
  return jobWith(jobs[0]!, `batch-${id}`, { items: jobs.map(makeItem) });
}

function makeItem({ id, data, requestId, status, at, traceparent, route }: NewDurableJob): ItemData {
  const item = { id, data, requestId, status, at };
  return { ...item, ...(traceparent === null ? {} : { traceparent }), ...(route === null ? {} : { route }) };
}

/** BullMQ refuses whole numbers and colons in ids. Ids that begin with `id-` are changed too, so that different ids stay different. */
function makeJobId(id: string): string {
  return /^-?\d+$/.test(id) || id.includes(':') || id.startsWith('id-') ? `id-${encodeURIComponent(id)}` : id;
}

function jobWith(job: NewDurableJob, jobId: string, items: ItemData | { items: ItemData[] }) {
  const { name, work, timeoutMs, attempts } = job;
  const { backoffMs, maxBackoffMs, delayMs, priority } = job.options;
  return {
    name,
    data: { work, timeoutMs, ...(attempts > 1 ? { maxBackoffMs } : {}), ...items },
    opts: {
      jobId,
      attempts,
      ...(attempts > 1 ? { backoff: { type: BOUNDED_BACKOFF, delay: backoffMs } } : {}),
      ...(delayMs > 0 ? { delay: delayMs } : {}),
      ...(priority > 0 ? { priority } : {}),
      ...KEEP,
    },
  };
}

export interface ReadJob {
  readonly jobs: readonly DurableJob[];
  readonly isBatch: boolean;
  /** Since when no worker has had its class, epoch milliseconds; null when it is known. */
  readonly unknownSinceMs: number | null;
}

/** Null for a job that this library has not written: any client of Redis may write to the queue. */
export function readJob({ id = '', name, data, opts, timestamp }: Job): ReadJob | null {
  const given = data as Partial<CommonData & ItemData & { items: unknown }> | null | undefined;
  if (!isRecord(given) || typeof given.work !== 'string' || !isTimeout(given.timeoutMs)) return null;
  const { work, timeoutMs, unknownSinceMs, items = [given] } = given;
  if (!Array.isArray(items) || items.length === 0 || !items.every(isItem)) return null;
  const jobs = items.map((item) => ({
    name,
    work,
    timeoutMs,
    attempts: opts.attempts ?? 1,
    id: item.id ?? id,
    data: item.data,
    requestId: item.requestId ?? null,
    status: item.status ?? null,
    at: item.at ?? timestamp,
    traceparent: item.traceparent ?? null,
    route: item.route ?? null,
  }));
  return {
    jobs,
    isBatch: given.items !== undefined,
    unknownSinceMs: Number.isFinite(unknownSinceMs) ? unknownSinceMs! : null,
  };
}

const isRecord = (given: unknown): given is object => typeof given === 'object' && given !== null;
const isTimeout = (given: unknown): given is number => typeof given === 'number' && given > 0 && given <= MAX_TIMER_MS;
const isTextOrNone = (given: unknown): boolean => (given ?? null) === null || typeof given === 'string';

function isItem(given: unknown): given is ItemData {
  if (!isRecord(given)) return false;
  const { id, requestId, traceparent, route, status, at } = given as Partial<ItemData>;
  const hasTexts = [id, requestId, traceparent, route].every(isTextOrNone);
  return hasTexts && [status, at].every((one) => (one ?? null) === null || Number.isFinite(one));
}
