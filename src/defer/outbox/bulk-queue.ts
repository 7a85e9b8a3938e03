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
  readonly Job?: { readonly createBulk?: unknown };
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
/** What rewritten functions hold: the tracers of Datadog and others put a channel of `node:diagnostics_channel` into them. */
const TRACER = /apm|channel|\barguments\b/i;

/**
 * Sends bulks to a queue of BullMQ. Consecutive jobs that differ in id and data only are a run: BullMQ makes the first,
 * and its script stores the others likewise. To make each costs the server 20 µs of CPU, more than all of our own path.
 */
export class BulkQueue {
  private sharing: boolean;
  /** For jobs that cannot be made from one another. */
  private readonly each: JobQueue;
  private readonly addBulk = new Original('createBulk');
  private readonly createBulk = new Original('addJobs', 'pipeline');

  constructor(private readonly queue: JobQueue) {
    this.each = withBulkScript(queue, null) ?? queue;
    this.sharing = this.each !== queue;
  }

  async add(jobs: readonly BulkJob[]): Promise<unknown> {
    const { defaultJobOptions, opts } = this.queue as BullmqQueue;
    const isBullmqs = this.isBullmqs();
    const sharing = this.sharing && isBullmqs && opts?.telemetry === undefined;
    const runs = sharing ? runsOf(jobs, defaultJobOptions) : null;
    if (runs !== null && runs.length > 0) {
      try {
        return await withBulkScript(this.queue, runs)!.addBulk(runs.map(firstOf));
      } catch (error) {
        if (!(error instanceof NotShared)) throw error;
        this.sharing = false;
      }
    }
    // What is not BullMQ's may keep private state in the queue, which nothing that stands in for it has.
    const queue = isBullmqs ? this.each : this.queue;
    return queue.addBulk(jobs.map(({ name, json, opts }) => ({ name, data: fromJson(json), opts })));
  }

  /**
   * Whether `addBulk`, and the `Job.createBulk` that it calls, are BullMQ's: a subclass, an instrumentation or a test's spy
   * must see every job. Asked each time, because a spy may come late.
   */
  private isBullmqs(): boolean {
    const { queue } = this;
    if (!isOwnOnce(queue, 'addBulk') || !isOwnOnce(queue, 'Job')) return false;
    const { Job } = queue as BullmqQueue;
    return this.addBulk.is(Reflect.get(queue, 'addBulk')) && this.createBulk.is(Job?.createBulk);
  }
}

/** Tells BullMQ's own function by its text: by what it calls, and that no tracer has written itself into it. */
class Original {
  private seen: unknown = null;
  private isOriginal = false;
  private readonly calls: RegExp;

  constructor(...names: string[]) {
    this.calls = new RegExp(`\\b(${names.join('|')})\\b`);
  }

  is(given: unknown): boolean {
    if (typeof given !== 'function') return false;
    if (given !== this.seen) {
      const text = Function.prototype.toString.call(given);
      this.seen = given;
      this.isOriginal = this.calls.test(text) && !TRACER.test(text);
    }
    return this.isOriginal;
  }
}

/** What BullMQ makes a run's first job of. Its data comes later, as the text that it is. */
const firstOf = ({ name, opts }: Run): { name: string; data: unknown; opts: object } => ({
  name,
  data: undefined,
  opts: { ...opts },
});

/** Neither a subclass nor the object itself has another `key` than the first class that has one. */
function isOwnOnce(given: object, key: string): boolean {
  let times = 0;
  for (let at: object | null = given; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    if (Object.hasOwn(at, key)) times += 1;
  }
  return times === 1;
}

/** Null when a job has options that are its own affair. */
function runsOf(jobs: readonly BulkJob[], defaults: object = {}): Run[] | null {
  if (!isShared(defaults)) return null;
  const runs: Run[] = [];
  let run: Run | null = null;
  for (const { name, json = '{}', opts } of jobs) {
    const { jobId } = opts as { jobId?: unknown };
    if (!isTaken(jobId) || !isShared(opts)) return null;
    if (run === null || run.name !== name || !isAlike(run.opts, opts)) {
      run = { name, opts, ids: [], jsons: [] };
      runs.push(run);
    }
    run.ids.push(jobId);
    run.jsons.push(json);
  }
  return runs;
}

/** An id that BullMQ takes: it refuses whole numbers, and most with a colon. Half a surrogate pair is another text in UTF-8. */
function isTaken(id: unknown): id is string {
  if (typeof id !== 'string' || id === '' || id.includes(':')) return false;
  return `${Number.parseInt(id, 10)}` !== id && !/\p{Surrogate}/u.test(id);
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
    // An option that is undefined is not the same as none: it hides the queue's own.
    if (!(key in b)) return false;
    if (key !== 'jobId' && a[key] !== b[key] && !isDeepStrictEqual(a[key], b[key])) return false;
  }
  for (const key in b) if (!(key in a)) return false;
  return true;
}
