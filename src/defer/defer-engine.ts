import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { entryOf } from '../core/entry-of.js';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { DeferStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import { Capacity } from './capacity.js';
import { Counters, nameOrigin, unstarted, type Origin } from './counters.js';
import type { AnyWork, ClassWork } from './decorator/work-providers.js';
import type { ResolvedDeferOptions } from './defer.options.js';
import type { DeferredBatchWork, DeferredWork, JobQueue } from './deferred-work.js';
import { durableEntry } from './durable/durable-entry.js';
import { DurableOutbox } from './durable/durable-outbox.js';
import { JobOutbox, type OutboxShared } from './outbox/outbox.js';
import type { DeadLetterPage, RejectedWork } from './spill/dead-letters.js';
import type { RequestWork } from './request-work.js';
import { Lanes } from './lanes.js';
import { BatchLane } from './tasks/batches.js';
import { ArmedWork, Task, type Armed, type Arming, type TaskRun, type TaskSpec } from './tasks/task.js';
import { TaskQueue } from './tasks/task-queue.js';
import { isThenable } from '../core/thenable.js';

const CUT_OFF = 'the application closed before it was done';
/** For what the last durable jobs have deferred, also when the deadline has passed, milliseconds. */
const LAST_MS = 100;
/** For the store and the disk to close, when the deadline has passed, milliseconds. */
const LAST_WORD_MS = 1_000;
/** A shutdown that takes longer logs its reasons, milliseconds. */
const LONG_DRAIN_MS = 1_000;

/**
 * All deferred work of one application: arms it, runs or sends what is committed, drains. It knows neither Nest nor HTTP.
 * Each `arm` returns null when the overflow policy drops its work, and throws PERF_ERR_DEFER_FULL with `overflow: 'reject'`, and PERF_ERR_SERIALIZE for what leaves the process.
 */
export class DeferEngine {
  /** Requests whose client has left, and whose handler is still busy. */
  readonly undecided = new Set<RequestWork>();
  readonly counters: Counters;
  /** Capacity for work of this process. Each outbox has its own: a store or queue that is away does not starve the others. */
  readonly capacity: Capacity;
  /** Null without a store. All durable queues are on one server: where one is away, all are. */
  readonly durable: DurableOutbox | null;
  private readonly queue: TaskQueue;
  /** One for each way in which a work with `runBatch` is to run. */
  private readonly lanes = new Lanes<BatchLane>();
  private readonly batchWorks = new Map<DeferredBatchWork, number>();
  private readonly shared: OutboxShared;
  private readonly jobs = new Map<JobQueue, JobOutbox>();
  /** Handlers that run, and whose work is not armed yet: a shutdown waits for them, `idle()` does not. */
  private handlers = 0;
  private closed = false;

  constructor(
    readonly options: ResolvedDeferOptions,
    publish: ((record: DeferredRecord) => void) | null,
    reporter: OncePerCause,
  ) {
    const { batch: limits, concurrency, maxPending, overflow, store } = options;
    const counters = (this.counters = new Counters(publish, reporter));
    this.capacity = new Capacity(overflow, maxPending);
    this.queue = new TaskQueue(concurrency, this.capacity, counters);
    const report = (cause: string, message: string): void => reporter.report(cause, message);
    this.shared = { limits, counters, report };
    this.durable = store === null ? null : new DurableOutbox(store, this.outboxCapacity(), this.shared);
  }

  armTask(spec: TaskSpec, run: TaskRun, arming: Arming, id: string = randomUUID()): Armed | null {
    if (!this.hold(spec.name, arming)) return null;
    const { sequence, when, origin } = arming;
    // Keeps the async context in which it is armed.
    const resource = new AsyncResource('PerfDeferredTask');
    const accept = (item: ArmedWork): void => this.queue.accept(new Task(spec, sequence, [item], run, resource, item));
    return new ArmedWork(id, spec, when, origin, this.queue, accept);
  }

  armClass(work: ClassWork, instance: AnyWork | Promise<AnyWork>, data: unknown, arming: Arming): Armed | null {
    const { when, origin, sequence } = arming;
    if (work.durable) {
      return this.durable!.arm(durableEntry(work, data, origin), when, sequence);
    }
    const id = work.id ?? randomUUID();
    if (work.kind === 'one') {
      const run: TaskRun = ({ info }) => {
        const runIt = (one: AnyWork): unknown => (one as DeferredWork).run(data, info);
        return isThenable(instance) ? instance.then(runIt) : runIt(instance);
      };
      return this.armTask(work, run, arming, id);
    }
    const batchWork = instance as DeferredBatchWork;
    if (!this.hold(work.name, arming)) return null;
    const number = entryOf(this.batchWorks, batchWork, () => this.batchWorks.size);
    const add = (item: ArmedWork): void => {
      const key = `${number} ${BatchLane.makeKey(work)}`;
      this.lanes.get(key, () => new BatchLane(batchWork, work, this.queue)).add(item);
    };
    return new ArmedWork(id, work, when, origin, this.queue, add, data);
  }

  /** A job of the user's own queue; null when the policy drops it. A queue that is dead starves no other. */
  armJob(queue: JobQueue, name: string, data: unknown, options: object | undefined, arming: Arming) {
    const outbox = entryOf(this.jobs, queue, () => new JobOutbox(queue, this.outboxCapacity(), this.shared));
    if (this.closed) outbox.close(CUT_OFF);
    return outbox.arm(name, data, options, arming);
  }

  /** A handler starts; call what it returns once, when its work is armed. */
  handlerStarted(): () => void {
    this.handlers += 1;
    return () => void (this.handlers -= 1);
  }

  async enqueue(work: ClassWork, data: unknown, origin: Origin | null): Promise<string> {
    const entry = durableEntry(work, data, origin);
    await this.durable!.enqueue(entry);
    return entry.id;
  }

  async rejected({ offset = 0, limit = 100 }: Partial<DeadLetterPage> = {}): Promise<RejectedWork[]> {
    return (await this.durable?.dead.list({ offset, limit })) ?? [];
  }

  async resend(ids?: readonly string[]): Promise<number> {
    return (await this.durable?.resend(ids)) ?? 0;
  }

  stats(): DeferStats {
    return this.counters.stats();
  }

  idle(): Promise<void> {
    return this.counters.whenIdle();
  }

  /**
   * Waits for handlers that outlive their clients, and finishes or hands over what was accepted, within the deadline; then
   * closes everything and reports by name what was cut off. Work that arrives meanwhile is still taken.
   */
  async drain(deadlineMs: number): Promise<void> {
    const startedMs = performance.now();
    const leftMs = (): number => Math.max(0, deadlineMs - (performance.now() - startedMs));
    this.queue.hurry();
    const saying = setTimeout(() => this.sayWaits(deadlineMs), LONG_DRAIN_MS).unref();
    const workerStopped = this.durable?.stopWorker(leftMs());
    await within(leftMs(), () => this.drained());
    await workerStopped;
    // A handler that has not ended by now has probably given up writing to its client.
    for (const work of this.undecided) work.handlerEnded(true);
    // The last durable jobs may have deferred something themselves.
    await within(Math.max(LAST_MS, leftMs()), () => this.drained());
    clearTimeout(saying);
    this.closed = true;
    const closing = `were cut off after ${deadlineMs} ms`;
    const inProcess = [this.queue, ...this.lanes.all(), ...this.jobs.values()].flatMap((part) => part.close(CUT_OFF));
    this.sayCut(`deferred tasks ${closing}`, inProcess, 'make the work durable');
    const unstored = this.durable?.close(CUT_OFF) ?? [];
    this.sayCut(`durable jobs that were not stored ${closing}`, unstored, 'give the store a `spillPath`');
    const { entries, files } = this.durable?.onDisk ?? { entries: 0, files: 0 };
    if (entries + files > 0) {
      const more = files > 0 ? `, and ${files} files of earlier processes,` : '';
      const cause = `${entries} durable items${more} are not stored yet`;
      this.shared.report(cause, `${cause}: they stay on disk and are sent at the next start, or by another process.`);
    }
    this.counters.close();
    await this.durable?.closeStore(Math.max(LAST_WORD_MS, leftMs()));
  }

  private sayCut(what: string, names: readonly string[], advice: string): void {
    if (names.length === 0) return;
    const message = `${names.length} ${what}: ${countNames(names)}. Raise \`defer.drainTimeoutMs\`, or ${advice}.`;
    this.shared.report(what, message);
  }

  private sayWaits(deadlineMs: number): void {
    const { pending, running } = this.stats();
    const handlers = Math.max(this.handlers, this.undecided.size);
    const waits = `${handlers} handlers and ${pending + running + this.counters.jobs} deferred tasks`;
    this.shared.report('the shutdown waits', `The shutdown waits for ${waits}, ${deadlineMs} ms at the most.`);
  }

  private async drained(): Promise<void> {
    while (!this.closed && (this.isHandling || !this.counters.idle)) {
      // Items that a task buffers during the drain must not wait for a full batch.
      for (const buffer of this.buffers()) buffer.flush();
      const next = new Promise<void>((resolve) => setTimeout(resolve, 20).unref());
      await (this.isHandling ? next : Promise.race([this.idle(), next]));
    }
  }

  /** Whether a handler's end is still to come, which decides over its work: it may fail after its client has left. */
  private get isHandling(): boolean {
    return this.handlers > 0 || this.undecided.size > 0;
  }

  private buffers() {
    return [...this.lanes.all(), ...this.jobs.values(), ...(this.durable === null ? [] : [this.durable])];
  }

  private outboxCapacity(): Capacity {
    const { overflow, maxPending, maxPendingBytes } = this.options;
    return new Capacity(overflow, maxPending, maxPendingBytes);
  }

  /** Takes capacity of this process; false, and counted, when the policy drops the new work. */
  private hold(name: string, { origin, sequence }: Arming): boolean {
    const { capacity } = this;
    if (capacity.takeFor(name, () => this.dropOldest() || sequence.dropArmed(capacity))) return true;
    this.counters.drop(null, unstarted(name, nameOrigin(origin), false), capacity.whyFull);
    return false;
  }

  /** Drops what has waited longest, a task or an item of a batch; false when nothing waits. */
  private dropOldest(): boolean {
    const [oldest] = [this.queue, ...this.lanes.all()].toSorted((a, b) => a.oldestMs - b.oldestMs);
    return oldest!.dropOldest();
  }
}

function countNames(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count})`)).join(', ');
}
