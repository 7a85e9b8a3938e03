import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { counted } from '../core/figures.js';
import { getOrAdd } from '../core/get-or-add.js';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { DeferStats } from '../core/snapshot.js';
import { isThenable } from '../core/thenable.js';
import { within } from '../core/within.js';
import { Counters } from './counters.js';
import type { AnyWork, ClassWork } from './decorator/work-providers.js';
import type { ResolvedDeferOptions } from './defer.options.js';
import type { DeferredBatchWork, DeferredWork, JobQueue } from './deferred-work.js';
import { DurableOutbox } from './durable/durable-outbox.js';
import { makeDurableEntry } from './durable/entry.js';
import { Room, type Armed } from './item.js';
import { JobOutbox } from './outbox/job-outbox.js';
import type { OutboxShared } from './outbox/outbox.js';
import type { RequestWork } from './request-work.js';
import { BatchLane } from './tasks/batches.js';
import { TaskItem, type Arming, type TaskRun, type TaskSpec } from './tasks/task.js';
import { TaskQueue } from './tasks/task-queue.js';

const CUT_OFF = 'the application closed before it was done';
/** Least time for work that the last durable jobs have deferred, even past the deadline, milliseconds. */
const LAST_MS = 100;
/** Least time for the store and the disk to close, even past the deadline, milliseconds. */
const LAST_WORD_MS = 1_000;
/** A shutdown that takes longer logs what it waits for, milliseconds. */
const LONG_DRAIN_MS = 1_000;
/** Time between two checks of handlers and buffers while the engine drains, milliseconds. */
const DRAIN_STEP_MS = 20;

/**
 * All deferred work of one application. Its `arm…` methods return null when the overflow policy drops the work.
 * @throws PERF_ERR_DEFER_FULL, PERF_ERR_SERIALIZE
 */
export class DeferEngine {
  /** Requests whose client has left while their handler is busy: its end decides over their work. */
  readonly undecided = new Set<RequestWork>();
  readonly counters: Counters;
  /** Room for work of this process. Each outbox has its own: a store or queue that is away does not starve the others. */
  readonly room: Room;
  /** Null without a store. One outbox for all durable queues: they are on one server, so where one is away, all are. */
  readonly durable: DurableOutbox | null;
  private readonly queue: TaskQueue;
  /** By instance with `runBatch`, then by the options that its batches run with. */
  private readonly lanes = new Map<DeferredBatchWork, Map<string, BatchLane>>();
  private readonly shared: OutboxShared;
  private readonly jobs = new Map<JobQueue, JobOutbox>();
  /** Decorated handlers that run, with work still to arm: a shutdown waits for them, `idle()` does not. */
  private runningHandlers = 0;
  private workerStopped: Promise<void> | null = null;
  closed = false;

  constructor(
    readonly options: ResolvedDeferOptions,
    publish: ((record: DeferredRecord) => void) | null,
    reporter: OncePerCause,
  ) {
    const { batch: limits, concurrency, maxPending, overflow, store } = options;
    this.counters = new Counters(publish, reporter);
    this.room = new Room(overflow, maxPending);
    this.queue = new TaskQueue(concurrency, this.room, this.counters);
    const report = (cause: string, message: string): void => reporter.report(cause, message);
    this.shared = { limits, counters: this.counters, report };
    this.durable = store === null ? null : new DurableOutbox(store, this.openRoom(), this.shared);
  }

  armTask(spec: TaskSpec, run: TaskRun, arming: Arming, id: string = randomUUID()): Armed | null {
    const queueUp = (one: TaskItem): void => this.queue.accept(one, arming.sequence);
    const item = new TaskItem(id, spec, arming, this.queue, queueUp, run);
    return item.takeRoom() ? item : null;
  }

  armClass(work: ClassWork, instance: AnyWork | Promise<AnyWork>, data: unknown, arming: Arming): Armed | null {
    if (work.durable) return this.durable!.arm(makeDurableEntry(work, data, arming.origin), arming.when);
    const id = work.id ?? randomUUID();
    if (work.kind === 'one') {
      const run: TaskRun = ({ info }) => {
        const runIt = (one: AnyWork): unknown => (one as DeferredWork).run(data, info);
        return isThenable(instance) ? instance.then(runIt) : runIt(instance);
      };
      return this.armTask(work, run, arming, id);
    }
    const queueUp = (one: TaskItem): void => this.queue.accept(one, this.findLane(work, instance as DeferredBatchWork));
    const item = new TaskItem(id, work, arming, this.queue, queueUp, null, data);
    return item.takeRoom() ? item : null;
  }

  private findLane(work: ClassWork, instance: DeferredBatchWork): BatchLane {
    const lanes = getOrAdd(this.lanes, instance, () => new Map<string, BatchLane>());
    const key = BatchLane.makeKey(work);
    return getOrAdd(lanes, key, () => new BatchLane(instance, work, this.queue, () => void lanes.delete(key)));
  }

  /** A job of the user's own queue; null when the policy drops it. A queue that is dead starves no other. */
  armJob(
    queue: JobQueue,
    name: string,
    data: unknown,
    options: object | undefined,
    origin: Arming['origin'],
  ): Armed | null {
    const outbox = this.jobs.get(queue) ?? this.openJobOutbox(queue);
    if (this.closed) outbox.close(CUT_OFF);
    const item = outbox.arm(name, data, options, origin);
    if (item !== null) this.jobs.set(queue, outbox);
    return item;
  }

  private openJobOutbox(queue: JobQueue): JobOutbox {
    const room = this.openRoom();
    // An application that opens a queue for each tenant would keep all of them here.
    room.onReleased = () => void (room.isEmpty && this.jobs.delete(queue));
    return new JobOutbox(queue, room, this.shared);
  }

  /** Call the returned function once, when the handler's work is armed. */
  handlerStarted(): () => void {
    this.runningHandlers += 1;
    return () => void (this.runningHandlers -= 1);
  }

  stats(): DeferStats {
    return this.counters.stats();
  }

  idle(): Promise<void> {
    return this.counters.whenIdle();
  }

  /** Why there is no room for new work: a reason for each that is full. */
  whyFull(): string[] {
    const { room, durable } = this;
    const rooms = durable?.lacksDisk === true ? [room, durable.room] : [room];
    return rooms.filter(({ left }) => left <= 0).map(({ whyFull }) => whyFull);
  }

  /** Finishes or hands over accepted work, within the deadline. New work is still accepted, until {@link drain}. */
  async finish(deadlineMs: number): Promise<void> {
    const startedMs = performance.now();
    const leftMs = (): number => Math.max(0, deadlineMs - (performance.now() - startedMs));
    this.queue.retryAllNow();
    const waiting = setTimeout(() => this.reportWaits(deadlineMs), LONG_DRAIN_MS).unref();
    this.workerStopped ??= this.durable?.stopWorker(leftMs()) ?? Promise.resolve();
    await within(leftMs(), () => this.drained());
    await this.workerStopped;
    // A handler still busy for a client that left may wait for ever: it counts as successful.
    for (const work of this.undecided) work.handlerEnded(true);
    // The last durable jobs may have deferred work themselves.
    await within(Math.max(LAST_MS, leftMs()), () => this.drained());
    clearTimeout(waiting);
  }

  /** Finishes within the deadline; then closes everything and reports by name what was cut off. */
  async drain(deadlineMs: number): Promise<void> {
    const { durable } = this;
    const startedMs = performance.now();
    await this.finish(deadlineMs);
    this.closed = true;
    const inProcess = [
      ...this.queue.close(CUT_OFF),
      ...this.allLanes().flatMap((lane) => lane.dropAll(CUT_OFF)),
      ...Array.from(this.jobs.values(), (outbox) => outbox.close(CUT_OFF)).flat(),
    ];
    this.reportCut(deadlineMs, 'deferred task', inProcess, 'make the work durable');
    const unstored = durable?.close(CUT_OFF) ?? [];
    this.reportCut(deadlineMs, 'unstored durable job', unstored, 'give the store a `spillPath`');
    const { entries, files } = durable?.onDisk ?? { entries: 0, files: 0 };
    if (entries + files > 0) {
      const more = files > 0 ? `, and ${files} files of earlier processes,` : '';
      const cause = `${entries} durable items${more} are not stored yet`;
      this.shared.report(cause, `${cause}: they stay on disk and are sent at the next start, or by another process.`);
    }
    this.counters.close();
    const leftMs = deadlineMs - (performance.now() - startedMs);
    await durable?.closeStore(Math.max(LAST_WORD_MS, leftMs));
  }

  private reportCut(afterMs: number, what: string, names: readonly string[], advice: string): void {
    if (names.length === 0) return;
    const cut = `The shutdown has cut off ${counted(names.length, what)} after ${afterMs} ms: ${countNames(names)}`;
    this.shared.report(`cut off: ${what}`, `${cut}. Raise \`defer.drainTimeoutMs\`, or ${advice}.`);
  }

  private reportWaits(deadlineMs: number): void {
    const { pending, running } = this.stats();
    const handlers = Math.max(this.runningHandlers, this.undecided.size);
    const tasks = pending + running + this.counters.runningJobs;
    const waits = `${counted(handlers, 'handler')} and ${counted(tasks, 'deferred task')}`;
    this.shared.report('the shutdown waits', `The shutdown waits for ${waits}, ${deadlineMs} ms at the most.`);
  }

  /** Resolves when no handler runs and no work is left. */
  private async drained(): Promise<void> {
    const isHandling = (): boolean => this.runningHandlers > 0 || this.undecided.size > 0;
    while (!this.closed && (isHandling() || !this.counters.idle)) {
      // Items that a task buffers during the drain must not wait for a full batch.
      for (const lane of [...this.allLanes(), ...this.jobs.values()]) lane.flush();
      this.durable?.flush();
      const step = sleep(DRAIN_STEP_MS, undefined, { ref: false });
      await (isHandling() ? step : Promise.race([this.idle(), step]));
    }
  }

  private allLanes(): BatchLane[] {
    return [...this.lanes.values()].flatMap((lanes) => [...lanes.values()]);
  }

  private openRoom(): Room {
    const { overflow, maxPending, maxPendingBytes } = this.options;
    return new Room(overflow, maxPending, maxPendingBytes);
  }
}

function countNames(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count})`)).join(', ');
}
