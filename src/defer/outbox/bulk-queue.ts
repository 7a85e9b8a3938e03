import { isDeepStrictEqual } from 'node:util';
import type { JobQueue } from '../deferred-work.js';
import { NotShared, withBulkScript, type Run } from './bulk-script.js';
import { fromJson } from './serialize.js';

/** A job on its way to a queue. */
export interface BulkJob {
  readonly name: string;
  /** Its data as JSON. */
  readonly json: string | undefined;
  /** BullMQ's options, with the job id in them. */
  readonly opts: object;
}

/** What a {@link BulkQueue} looks at beside `addBulk`. */
interface BullmqQueue extends JobQueue {
  readonly defaultJobOptions?: object;
  readonly opts?: { readonly telemetry?: unknown };
}

/** Options that mean the same for every job of a run, whatever its id and data are. */
const SHARED_OPTIONS = new Set([
  'jobId',
  'attempts',
  'backoff',
  'keepLogs',
  'lifo',
  'removeOnComplete',
  'removeOnFail',
  'stackTraceLimit',
]);
/** Ids that BullMQ takes for certain: it refuses whole numbers, and colons. */
const TAKEN_ID = /^[^:]*[^-\d:][^:]*$/;

/**
 * Sends bulks to a queue of BullMQ. Consecutive jobs that differ in id and data only are a run: BullMQ makes the first,
 * and its script stores the others likewise. To make each costs the server 20 µs of CPU, more than all of our own path.
 */
export class BulkQueue {
  private sharing: boolean;
  /** For jobs that cannot be made from one another. */
  private readonly each: JobQueue;
  private method: unknown = null;
  private methodIsOwn = false;

  constructor(private readonly queue: JobQueue) {
    this.each = withBulkScript(queue, null) ?? queue;
    this.sharing = this.each !== queue && hasOneJobClass(queue);
  }

  async add(jobs: readonly BulkJob[]): Promise<unknown> {
    const { defaultJobOptions, opts } = this.queue as BullmqQueue;
    const sharing = this.sharing && opts?.telemetry === undefined && this.isBullmqs();
    const runs = sharing ? runsOf(jobs, defaultJobOptions) : null;
    if (runs !== null) {
      try {
        return await withBulkScript(this.queue, runs)!.addBulk(runs.map(firstOf));
      } catch (error) {
        if (!(error instanceof NotShared)) throw error;
        this.sharing = false;
      }
    }
    return this.each.addBulk(jobs.map(({ name, json, opts }) => ({ name, data: fromJson(json), opts })));
  }

  /**
   * Whether `addBulk` is BullMQ's: a subclass, an instrumentation or a test's spy must see every job. BullMQ's own, and
   * nothing that calls it, hands them to `Job.createBulk`. Asked each time, because a spy may come late.
   */
  private isBullmqs(): boolean {
    const method: unknown = Reflect.get(this.queue, 'addBulk');
    if (method !== this.method) {
      this.method = method;
      this.methodIsOwn = /\bcreateBulk\b/.test(Function.prototype.toString.call(method));
    }
    return this.methodIsOwn;
  }
}

/** What BullMQ makes a run's first job of. Its data comes later, as the text that it is. */
const firstOf = ({ name, opts }: Run): { name: string; data: unknown; opts: object } => ({
  name,
  data: undefined,
  opts,
});

/** A queue whose class makes jobs of its own kind must make each of them. */
function hasOneJobClass(queue: JobQueue): boolean {
  let classes = 0;
  for (let at: object | null = queue; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    if (Object.hasOwn(at, 'Job')) classes += 1;
  }
  return classes === 1;
}

/** Null when a job has options that are its own affair. */
function runsOf(jobs: readonly BulkJob[], defaults: object = {}): Run[] | null {
  if (!isShared(defaults)) return null;
  const runs: Run[] = [];
  let run: Run | null = null;
  for (const { name, json = '{}', opts } of jobs) {
    const { jobId } = opts as { jobId?: unknown };
    if (typeof jobId !== 'string' || !TAKEN_ID.test(jobId) || !isShared(opts)) return null;
    if (run === null || run.name !== name || !isAlike(run.opts, opts)) {
      run = { name, opts, ids: [], jsons: [] };
      runs.push(run);
    }
    run.ids.push(jobId);
    run.jsons.push(json);
  }
  return runs;
}

function isShared(options: object): boolean {
  for (const key in options) if (!SHARED_OPTIONS.has(key)) return false;
  return true;
}

/** Equal but for the id. */
function isAlike(some: object, others: object): boolean {
  const a = some as Record<string, unknown>;
  const b = others as Record<string, unknown>;
  for (const key in a) {
    if (key !== 'jobId' && a[key] !== b[key] && !isDeepStrictEqual(a[key], b[key])) return false;
  }
  for (const key in b) if (!(key in a)) return false;
  return true;
}
