import { AsyncResource } from 'node:async_hooks';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { DeferStats } from '../core/snapshot.js';
import { PerfError } from '../core/perf.error.js';
import { within } from '../core/within.js';
import type { ResolvedDeferOptions } from './defer.options.js';
import type { DeferredBatchWork, JobQueue } from './deferred-work.js';
import { DurableItem, DurableOutbox } from './outbox/durable-outbox.js';
import type { DurableStoreHost, JournalEntry } from './durable/durable-store.js';
import { JobIds } from './outbox/job-ids.js';
import { BufferedJob, JobOutbox } from './outbox/job-outbox.js';
import { Rejects, type RejectedWork } from './outbox/rejects.js';
import { DeferLedger, type Ended } from './ledger.js';
import { full, noRoom, takeRoom } from './overflow.js';
import type { Armed, RequestTasks } from './request-tasks.js';
import { Room } from './room.js';
import { bytesOf, toJson } from './outbox/serialize.js';
import { DeferTask, type Origin, type TaskRun, type TaskSequence, type TaskSpec } from './tasks/task.js';
import { BatchLane, LaneItem } from './tasks/batch-lane.js';
import { TaskQueue } from './tasks/task-queue.js';
import type { BatchOptions } from './work-options.js';

/** Why something is left when the application has closed. */
const CUT_OFF = 'the application closed before it was done';
/** For what the last durable jobs have deferred, also when the deadline has passed, milliseconds. */
const LAST_MS = 100;

/** Work with `runBatch`, and how it is to run. */
export interface BatchWork {
  readonly instance: DeferredBatchWork;
  readonly spec: TaskSpec;
  readonly batch: BatchOptions;
  /** Null: made up. */
  readonly id?: string | null;
}

/**
 * All deferred work of one application: takes room for what is armed, runs or sends what is committed, drains.
 * It knows neither Nest nor HTTP.
 */
export class DeferEngine {
  readonly undecided = new Set<RequestTasks>();
  readonly ids = new JobIds();
  readonly ledger: DeferLedger;
  /** Room in this process, and room for what leaves it: a store or queue that is away starves nobody else. */
  readonly taskRoom: Room;
  /** All durable queues are on one server: where one is away, all are. */
  readonly durableRoom: Room;
  private readonly rejects = new Rejects();
  private readonly writing = new Set<Promise<unknown>>();
  private closed = false;
  private readonly lanes = new Map<DeferredBatchWork, Map<string, BatchLane>>();
  /** The same by the object that a handler keeps. */
  private readonly laneOfSpec = new WeakMap<TaskSpec, BatchLane>();
  private readonly root = new AsyncResource('PerfDefer');
  private readonly queue: TaskQueue;
  private readonly jobs: JobOutbox;
  private readonly durable: DurableOutbox | null;

  constructor(
    readonly options: ResolvedDeferOptions,
    publish: ((record: DeferredRecord) => void) | null,
    private readonly report: OncePerCause,
  ) {
    const { batch: limits, concurrency, maxPending, maxPendingBytes, store } = options;
    const say = (cause: string, message: string): void => report.report(cause, message);
    this.ledger = new DeferLedger(publish, report);
    this.taskRoom = new Room(maxPending);
    const newRoom = (): Room => new Room(maxPending, maxPendingBytes);
    this.queue = new TaskQueue({ concurrency }, this.taskRoom, this.ledger, () => this.ids.next());
    this.durableRoom = newRoom();
    const { ledger, rejects } = this;
    this.jobs = new JobOutbox({ limits, ledger, rejects, report: say }, newRoom);
    this.durable =
      store === null ? null : new DurableOutbox(store, { limits, ledger, rejects, report: say }, this.durableRoom);
  }

  /**
   * Opens the store: work may be stored from here on.
   * @param worker what runs the jobs that the store hands back, once {@link startWorker} is called
   */
  async start(worker: Omit<DurableStoreHost, 'report'>): Promise<void> {
    const { store } = this.options;
    if (store === null) return;
    try {
      const report: DurableStoreHost['report'] = (cause, message) => this.report.report(cause, message);
      await store.start({
        run: (job, attempt, signal) => worker.run(job, attempt, signal),
        runBatch: (jobs, attempt, signal) => worker.runBatch(jobs, attempt, signal),
        kindOf: (work) => worker.kindOf(work),
        queues: () => worker.queues(),
        report,
      });
      await this.durable?.open();
    } catch (error) {
      // A boot that fails must not keep the process alive.
      await this.stopWorker(0);
      await this.closeStore();
      throw error;
    }
  }

  /** A task of this process; null when there is no room and the policy drops it. `reserved` room was taken before. */
  armTask(
    spec: TaskSpec,
    run: TaskRun,
    when: Armed['when'],
    origin: Origin | null,
    sequence: TaskSequence,
    reserved = false,
    id: string | null = null,
  ): Armed | null {
    const { taskRoom } = this;
    // Where one request has armed all that there is room for, its own first task is the oldest.
    const dropOldest = (): boolean => this.dropOldestTask(null) || this.disarm(sequence.disarmOldest());
    if (!reserved && !takeRoom(taskRoom, this.options.overflow, dropOldest, spec.name)) {
      this.dropNew(spec.name, origin, taskRoom);
      return null;
    }
    return new DeferTask(spec, run, when, origin, sequence, this.queue, id);
  }

  /**
   * A job of the user's own queue; null when the policy drops it.
   * @throws PERF_ERR_SERIALIZE
   */
  armJob(queue: JobQueue, name: string, data: unknown, opts: object | undefined, origin: Origin | null): Armed | null {
    const json = toJson(data, `job "${name}" for queue "${queue.name}"`);
    const lane = this.jobs.laneOf(queue);
    if (this.closed) lane.close(CUT_OFF);
    const label = `${queue.name}/${name}`;
    if (!takeRoom(lane.room, this.options.overflow, () => lane.dropOldest(), label, bytesOf(json))) {
      this.dropNew(label, origin, lane.room);
      return null;
    }
    const { jobId = this.ids.next() } = (opts ?? {}) as { jobId?: string };
    // Only for a record: the request itself must not be kept for as long as the queue may be away.
    const requestId = this.ledger.records ? (origin?.id ?? null) : null;
    const route = this.ledger.records ? (origin?.pattern ?? null) : null;
    return new BufferedJob(lane, name, json, { ...opts, jobId }, requestId, route);
  }

  /** Tasks and batches share a room. */
  private dropOldestTask(own: BatchLane | null): boolean {
    return own?.dropOldest() === true || this.queue.dropOldest() || this.allLanes().some((lane) => lane.dropOldest());
  }

  private disarm(task: DeferTask | null): boolean {
    if (task === null) return false;
    task.discard();
    this.ledger.dropNew({ ...task.ended(null, 0), waitMs: 0 }, 'newer work took its place');
    return true;
  }

  /** One item of a work with `runBatch`; null when the policy drops it. */
  armItem(work: BatchWork, data: unknown, when: Armed['when'], origin: Origin | null, reserved = false): Armed | null {
    const { taskRoom } = this;
    const lane = this.laneOf(work);
    if (!reserved && !takeRoom(taskRoom, this.options.overflow, () => this.dropOldestTask(lane), work.spec.name)) {
      this.dropNew(work.spec.name, origin, taskRoom);
      return null;
    }
    return new LaneItem(work.id ?? this.ids.next(), data, when, namesOf(origin), lane);
  }

  private laneOf(work: BatchWork): BatchLane {
    let lane = this.laneOfSpec.get(work.spec);
    if (lane === undefined) {
      lane = this.findLane(work);
      this.laneOfSpec.set(work.spec, lane);
    }
    return lane;
  }

  private findLane({ instance, spec, batch }: BatchWork): BatchLane {
    let lanes = this.lanes.get(instance);
    if (lanes === undefined) this.lanes.set(instance, (lanes = new Map()));
    const key = JSON.stringify([spec.name, spec.timeoutMs, spec.attempts, spec.backoffMs, spec.maxBackoffMs, batch]);
    let lane = lanes.get(key);
    if (lane === undefined) {
      const run = instance.runBatch.bind(instance);
      lane = new BatchLane(run, spec, batch, this.taskRoom, this.ledger, this.root);
      if (this.closed) lane.close(CUT_OFF);
      lanes.set(key, lane);
    }
    return lane;
  }

  private allLanes(): BatchLane[] {
    return [...this.lanes.values()].flatMap((lanes) => [...lanes.values()]);
  }

  /** Whether prepared durable data must be on disk before the response goes on. */
  get journaled(): boolean {
    return this.options.store?.journal !== undefined && this.options.store.journal !== null;
  }

  /** Durable work without a journal; null when the policy drops it. */
  armDurable(entry: JournalEntry, when: Armed['when'], reserved = false): Armed | null {
    const { durable, durableRoom: room } = this;
    if (durable === null) return null;
    const bytes = bytesOf(entry.json);
    // What is reserved has its place already; its size was not known then.
    if (reserved) room.fill(bytes, 0);
    else if (!takeRoom(room, this.options.overflow, () => durable.dropOldest(), entry.name, bytes)) {
      this.ledger.dropNew(droppedOf(entry.name, entry, true), noRoom(room));
      return null;
    }
    return new DurableItem(entry, when, durable, null);
  }

  /** Durable work with a journal: resolves when it is on disk, where it stays when memory has no room. */
  armJournaled(entry: JournalEntry, when: Armed['when']): Promise<Armed | null> {
    return this.whileWriting(async () => {
      const { durable } = this;
      if (durable === null) return null;
      const place = await durable.write(entry);
      if (place === null) return this.armDurable(entry, when);
      if (this.durableRoom.take(bytesOf(entry.json))) return new DurableItem(entry, when, durable, place);
      return { when, commit: () => durable.park(place), discard: () => durable.forget(place) };
    });
  }

  /**
   * Durable work, now: resolves when it is on disk or in the store. Rejects when the store refuses it for good, and when
   * the application closes before.
   * @throws PERF_ERR_DEFER_FULL, PERF_ERR_STORE
   */
  async enqueue(entry: JournalEntry): Promise<void> {
    const { durable, durableRoom: room } = this;
    if (durable === null) return;
    if (this.closed)
      throw new PerfError('PERF_ERR_STORE', `"${entry.name}" cannot be stored: the application has closed.`);
    const bytes = bytesOf(entry.json);
    const isOnDisk = await this.whileWriting(async () => {
      const place = await durable.write(entry);
      if (place === null) return false;
      if (room.take(bytes)) durable.add(new DurableItem(entry, null, durable, place));
      else durable.park(place);
      return true;
    });
    if (isOnDisk) return;
    if (!room.take(bytes)) throw full(entry.name, room);
    await new Promise<void>((resolve, reject) => {
      const ended = (error: Error | null): void => (error === null ? resolve() : reject(error));
      durable.add(new DurableItem(entry, null, durable, null, ended));
    });
  }

  /** Nothing of it is on the books while it is being written. */
  private async whileWriting<T>(work: () => Promise<T>): Promise<T> {
    const writing = work();
    this.writing.add(writing);
    try {
      return await writing;
    } finally {
      this.writing.delete(writing);
    }
  }

  /** What queues and the store have refused for good. */
  async rejected(): Promise<RejectedWork[]> {
    return [...((await this.durable?.rejected()) ?? []), ...this.rejects.list()];
  }

  /** Sends rejects again; returns how many there was room for. */
  async resend(ids?: readonly string[]): Promise<number> {
    return ((await this.durable?.resend(ids)) ?? 0) + this.rejects.resend(ids);
  }

  stats(): DeferStats {
    return this.ledger.stats();
  }

  /** Nothing is pending, running or buffered. */
  get isIdle(): boolean {
    return this.ledger.idle && this.writing.size === 0;
  }

  /** Resolves when nothing is pending, running or buffered. */
  async idle(): Promise<void> {
    while (!this.isIdle) {
      await Promise.allSettled(this.writing);
      await this.ledger.whenIdle();
    }
  }

  /**
   * Finishes or hands over what was accepted, within the deadline; then closes everything and says by name what was cut
   * off. Work that arrives meanwhile is still taken.
   */
  async drain(deadlineMs: number): Promise<void> {
    const startedMs = performance.now();
    const leftMs = (): number => Math.max(0, deadlineMs - (performance.now() - startedMs));
    for (const tasks of this.undecided) tasks.handlerEnded(true);
    this.queue.hurry();
    for (const lane of this.allLanes()) lane.flush();
    const { store } = this.options;
    const workerStopped = store === null ? Promise.resolve() : this.stopWorker(leftMs());
    await within(leftMs(), () => this.drained());
    await workerStopped;
    // The last durable jobs may have deferred something themselves.
    await within(Math.max(LAST_MS, leftMs()), () => this.drained());
    this.closed = true;
    const lanes = this.allLanes().flatMap((lane) => lane.close(CUT_OFF));
    const names = [...this.queue.close(CUT_OFF), ...lanes, ...this.jobs.close(CUT_OFF)];
    const durable = this.durable?.close(CUT_OFF) ?? { dropped: [], onDisk: 0 };
    this.reportCutOff([...names, ...durable.dropped], deadlineMs);
    if (durable.onDisk > 0) {
      const cause = `${durable.onDisk} durable items are not stored yet`;
      this.report.report(cause, `${cause}: they stay in the spill file and are sent at the next start.`);
    }
    this.ledger.close();
    await this.closeStore();
  }

  private async drained(): Promise<void> {
    while (!this.isIdle) {
      // What a task buffers while it drains must not wait for a full batch.
      for (const lane of this.allLanes()) lane.flush();
      this.jobs.flush();
      this.durable?.flush();
      await Promise.race([this.idle(), new Promise((next) => setTimeout(next, 20).unref())]);
    }
  }

  /** Every module is initialised: jobs may run. */
  startWorker(): void {
    this.options.store?.startWorker?.();
  }

  /** The application begins to close: this process takes no durable work from its store any more. */
  async pauseWorker(): Promise<void> {
    try {
      await this.options.store?.pauseWorker?.();
    } catch (error) {
      this.storeFailed('pause its worker', error);
    }
  }

  private async stopWorker(deadlineMs: number): Promise<void> {
    try {
      await this.options.store?.stopWorker(deadlineMs);
    } catch (error) {
      this.storeFailed('stop its worker', error);
    }
  }

  private async closeStore(): Promise<void> {
    try {
      await this.options.store?.close();
      await this.options.store?.journal?.close();
    } catch (error) {
      this.storeFailed('close', error);
    }
  }

  private storeFailed(step: string, error: unknown): void {
    const cause = `store "${this.options.store?.name}" failed to ${step}`;
    this.report.report(cause, `${cause}: ${error instanceof Error ? error.message : String(error)}`);
  }

  private reportCutOff(names: readonly string[], deadlineMs: number): void {
    if (names.length === 0) return;
    const counts = new Map<string, number>();
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
    const list = [...counts].map(([name, count]) => (count === 1 ? name : `${name} (${count})`)).join(', ');
    const message =
      `${names.length} deferred tasks were cut off after ${deadlineMs} ms: ${list}. ` +
      'Raise `defer.drainTimeoutMs`, or make the work durable.';
    this.report.report('deferred tasks were cut off', message);
  }

  private dropNew(name: string, origin: Origin | null, room: Room): void {
    this.ledger.dropNew(droppedOf(name, namesOf(origin)), noRoom(room));
  }
}

const namesOf = (origin: Origin | null): { requestId: string | null; route: string | null } => ({
  requestId: origin?.id ?? null,
  route: origin?.pattern ?? null,
});

function droppedOf(name: string, { requestId, route }: Pick<Ended, 'requestId' | 'route'>, durable = false): Ended {
  return { name, requestId, route, durable, waitMs: 0, runMs: 0, attempt: 1 };
}
