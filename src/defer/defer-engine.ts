import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { DeferStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import type { ResolvedDeferOptions } from './defer.options.js';
import type { JobQueue } from './deferred-work.js';
import { DurableItem, DurableOutbox } from './outbox/durable-outbox.js';
import type { DurableStoreHost, JournalEntry } from './durable/durable-store.js';
import { JobIds } from './outbox/job-ids.js';
import { BufferedJob, JobOutbox } from './outbox/job-outbox.js';
import { DeferLedger } from './ledger.js';
import { noRoom, takeRoom } from './overflow.js';
import type { Armed, RequestTasks } from './request-tasks.js';
import { Room } from './room.js';
import { toJson } from './outbox/serialize.js';
import { DeferTask, type Origin, type TaskRun, type TaskSequence, type TaskSpec } from './tasks/task.js';
import { TaskQueue } from './tasks/task-queue.js';

/** Why something is left when the application has closed. */
const CUT_OFF = 'the application closed before it was done';

/**
 * All deferred work of one application: takes room for what is armed, runs or sends what is committed, drains.
 * It knows neither Nest nor HTTP.
 */
export class DeferEngine {
  readonly undecided = new Set<RequestTasks>();
  readonly ids = new JobIds();
  readonly ledger: DeferLedger;
  /** Room in this process, and room for what leaves it: a stalled store must not starve the work that needs none. */
  readonly taskRoom: Room;
  readonly outboxRoom: Room;
  private readonly queue: TaskQueue;
  private readonly jobs: JobOutbox;
  private readonly durable: DurableOutbox | null;

  constructor(
    readonly options: ResolvedDeferOptions,
    publish: ((record: DeferredRecord) => void) | null,
    private readonly report: OncePerCause,
  ) {
    const { batch, concurrency, maxPending, store } = options;
    const say = (cause: string, message: string): void => report.report(cause, message);
    this.ledger = new DeferLedger(publish, report);
    this.taskRoom = new Room(maxPending);
    this.outboxRoom = new Room(maxPending);
    this.queue = new TaskQueue({ concurrency }, this.taskRoom, this.ledger);
    this.jobs = new JobOutbox(batch, this.outboxRoom, this.ledger, say);
    this.durable = store === null ? null : new DurableOutbox(store, batch, this.outboxRoom, this.ledger, say);
  }

  async start(run: DurableStoreHost['run']): Promise<void> {
    const { store } = this.options;
    if (store === null) return;
    try {
      await store.start({ run, report: (cause, message) => this.report.report(cause, message) });
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
  ): Armed | null {
    const { taskRoom } = this;
    if (!reserved && !takeRoom(taskRoom, this.options.overflow, () => this.queue.dropOldest(), spec.name)) {
      this.dropNew(spec.name, origin, taskRoom);
      return null;
    }
    return new DeferTask(spec, run, when, origin, sequence, this.queue);
  }

  /**
   * A job of the user's own queue; null when the policy drops it.
   * @throws PERF_ERR_SERIALIZE
   */
  armJob(queue: JobQueue, name: string, data: unknown, opts: object | undefined, origin: Origin | null): Armed | null {
    const json = toJson(data, `job "${name}" for queue "${queue.name}"`);
    const { outboxRoom } = this;
    if (!outboxRoom.take() && !this.makeRoomForJob(`${queue.name}/${name}`)) {
      this.dropNew(`${queue.name}/${name}`, origin, outboxRoom);
      return null;
    }
    const hasId = opts !== undefined && 'jobId' in opts && opts.jobId !== undefined;
    const sent = hasId ? { ...opts } : { ...opts, jobId: this.ids.next() };
    // Only for a record: the request itself must not be kept for as long as the queue may be away.
    const requestId = this.ledger.records ? (origin?.id ?? null) : null;
    return new BufferedJob(queue, name, json, sent, requestId, this.jobs);
  }

  private makeRoomForJob(label: string): boolean {
    return takeRoom(this.outboxRoom, this.options.overflow, () => this.jobs.dropOldest(), label);
  }

  /** Whether prepared durable data must be on disk before the response goes on. */
  get journaled(): boolean {
    return this.options.store?.journal !== undefined && this.options.store.journal !== null;
  }

  /** Durable work without a journal; null when the policy drops it. */
  armDurable(entry: JournalEntry, when: Armed['when'], reserved = false): Armed | null {
    const { durable, outboxRoom } = this;
    if (durable === null) return null;
    if (!reserved && !takeRoom(outboxRoom, this.options.overflow, () => durable.dropOldest(), entry.name)) {
      this.dropNew(entry.name, entry.requestId === null ? null : { id: entry.requestId }, outboxRoom);
      return null;
    }
    return new DurableItem(entry, when, durable);
  }

  /** Durable work with a journal: resolves when it is on disk, where it stays when memory has no room. */
  async armJournaled(entry: JournalEntry, when: Armed['when'], reserved = false): Promise<Armed | null> {
    const { durable } = this;
    if (durable === null) return null;
    const onDisk = await durable.journal(entry);
    if (!onDisk || reserved || this.outboxRoom.take()) return this.armDurable(entry, when, reserved || onDisk);
    return { when, commit: () => durable.park(entry.id), discard: () => durable.forget(entry.id) };
  }

  stats(): DeferStats {
    return this.ledger.stats();
  }

  /** Resolves when nothing is pending, running or buffered. */
  idle(): Promise<void> {
    return this.ledger.whenIdle();
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
    const { store } = this.options;
    const workerStopped = store === null ? Promise.resolve() : this.stopWorker(leftMs());
    await within(leftMs(), () => this.drained());
    await workerStopped;
    const names = [...this.queue.close(CUT_OFF), ...this.jobs.close(CUT_OFF)];
    const durable = this.durable?.close(CUT_OFF) ?? { dropped: [], onDisk: 0 };
    this.reportCutOff([...names, ...durable.dropped], deadlineMs);
    if (durable.onDisk > 0) {
      const cause = `${durable.onDisk} durable items are not stored yet`;
      this.report.report(cause, `${cause}: they stay in the spill file and are sent at the next start.`);
    }
    await this.closeStore();
  }

  private async drained(): Promise<void> {
    while (!this.ledger.idle) {
      // What a task buffers while it drains must not wait for a full batch.
      this.jobs.flush();
      this.durable?.flush();
      await Promise.race([this.ledger.whenIdle(), new Promise((next) => setTimeout(next, 20).unref())]);
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
    this.ledger.dropNew({ name, requestId: origin?.id ?? null, waitMs: 0, runMs: 0, attempt: 1 }, noRoom(room));
  }
}
