import { randomUUID } from 'node:crypto';
import { PerfError } from '../../core/perf.error.js';
import { describeReason } from '../../core/reason.js';
import { NEWER, type Capacity } from '../capacity.js';
import { nameOrigin, unstarted, type Counters, type Ended } from '../counters.js';
import type { DeferWhen, JobQueue } from '../deferred-work.js';
import { countBytes, fromJson, toJson } from '../durable/entry.js';
import type { Place } from '../spill/segment.js';
import type { Armed, Arming, TaskSequence } from '../tasks/task.js';
import { BulkSender, isServerTrouble, type BatchLimits, type BulkEvents, type Group } from './bulk-sender.js';

/** How long a job of the application's own queue is sent again. The buffer is no store: it outlives a failover, no outage of hours. */
const KEPT_MINUTES = 10;

/** Work that leaves this process: durable work, or a job for the application's own queue. */
export interface Parcel {
  readonly id: string;
  readonly name: string;
  readonly json: string | undefined;
  readonly requestId: string | null;
  readonly route: string | null;
}

export interface OutboxShared {
  readonly limits: BatchLimits;
  readonly counters: Counters;
  readonly report: (cause: string, message: string) => void;
}

export class OutboxItem<P extends Parcel = Parcel> implements Armed {
  /** Final status of the response; null when it is replayed. */
  status: number | null = null;
  acceptedMs = performance.now();
  /** On disk; null while it is not, or not yet. */
  place: Place | null = null;
  written?: Promise<PerfError | null>;
  /** False: there is none in memory, but a disk that takes it. */
  hasCapacity = true;
  /** It is stored, refused, dropped or not wanted. */
  isOver = false;

  constructor(
    private readonly outbox: Outbox<P>,
    public parcel: P,
    readonly when: DeferWhen | null = null,
    /** Called with null once it is stored. */
    readonly ended: (error: Error | null) => void = () => {},
  ) {}

  /** Frees the memory of data that is on disk. */
  dropData(): void {
    this.parcel = { ...this.parcel, json: undefined };
  }

  get name(): string {
    return this.parcel.name;
  }

  get bytes(): number {
    return countBytes(this.parcel.json);
  }

  get capacity(): Capacity | null {
    return this.written === undefined ? this.outbox.capacity : null;
  }

  commit(status: number | null): void {
    this.status = status;
    this.outbox.add(this);
  }

  drop(why: string): void {
    this.outbox.drop(this, why, null);
  }

  discard(): void {
    this.outbox.forget([this]);
  }
}

/** A bounded buffer in front of a queue or store: what is in it is sent in micro-batches until it is stored or refused. */
export abstract class Outbox<P extends Parcel = Parcel> implements BulkEvents<OutboxItem<P>> {
  private readonly sender = new BulkSender<OutboxItem<P>>(this);
  protected closed = false;

  constructor(
    /** In reports, for example `jobs for queue "mail"`. */
    private readonly what: string,
    /** A worker writes the record, rather than who stores it. */
    private readonly durable: boolean,
    readonly capacity: Capacity,
    protected readonly shared: OutboxShared,
  ) {}

  abstract store(items: readonly OutboxItem<P>[]): Promise<unknown>;

  /** Null when the policy drops it. @throws PERF_ERR_DEFER_FULL with `'reject'` */
  armInMemory(parcel: P, when: DeferWhen | null, sequence?: TaskSequence): OutboxItem<P> | null {
    const { capacity, durable } = this;
    const dropOldest = (): boolean => this.dropOldest() || sequence?.dropArmed(capacity) === true;
    if (capacity.takeFor(parcel.name, dropOldest, countBytes(parcel.json))) return new OutboxItem(this, parcel, when);
    this.shared.counters.drop(null, unstarted(parcel.name, parcel, durable), capacity.whyFull);
    return null;
  }

  add(item: OutboxItem<P>): void {
    item.acceptedMs = performance.now();
    this.shared.counters.move(null, 'buffered');
    if (!this.closed) this.send(item);
    // An item on disk stays there, and is sent at the next start.
    else if (item.place === null) this.drop(item, 'the application has closed');
  }

  flush(): void {
    this.sender.flush();
  }

  /** Stops, and drops what is nowhere else; returns its names. */
  close(reason: string): string[] {
    this.closed = true;
    const lost = this.sender.close().filter(({ place }) => place === null);
    for (const item of lost) this.drop(item, reason);
    return lost.map(({ parcel }) => parcel.name);
  }

  /** Parcels of one group may travel in one bulk. */
  protected chooseGroup(_parcel: P): Group {
    return { key: '', limits: this.shared.limits, isOneJob: false };
  }

  protected send(item: OutboxItem<P>): void {
    this.sender.add(item, this.chooseGroup(item.parcel));
  }

  /** Drops what has waited longest, and is neither on its way nor on disk; false when nothing is. */
  private dropOldest(): boolean {
    const waiting = this.sender.oldest(({ place }) => place === null);
    const [oldest] = waiting.toSorted((a, b) => a.acceptedMs - b.acceptedMs);
    if (oldest === undefined) return false;
    this.sender.takeBack(oldest);
    this.drop(oldest, NEWER);
    return true;
  }

  retried(items: readonly OutboxItem<P>[], error: unknown): readonly OutboxItem<P>[] {
    this.shared.counters.retried += items.length;
    const advice = isServerTrouble(error)
      ? `All is kept${this.durable ? '' : ` for ${KEPT_MINUTES} minutes`}, and sent again under the same ids.`
      : 'It is sent again; a job that is refused while others get through is given up, and named.';
    const cause = `${this.what} could not be stored: ${describeReason(error)}`;
    this.shared.report(cause, `${cause}. ${advice}`);
    return items;
  }

  stored(items: readonly OutboxItem<P>[], sends: number, sentMs: number): void {
    const { counters } = this.shared;
    if (!this.durable) for (const item of items) counters.record(this.describeEnd(item, sends, sentMs), 'completed');
    counters.move('buffered', 'stored', items.length);
    this.forget(items);
    for (const item of items) item.ended(null);
  }

  refused(item: OutboxItem<P>, sends: number, error: unknown): void {
    this.reject(item, describeReason(error));
    this.capacity.release(item.bytes);
    this.shared.counters.fail('buffered', this.describeEnd(item, sends, 0), error);
    item.ended(error instanceof Error ? error : new Error(describeReason(error)));
  }

  /** Work that its store has refused for good. The application's own queue is no matter of ours: counted and reported, no more. */
  protected reject(_item: OutboxItem<P>, _error: string): void {}

  drop(item: OutboxItem<P>, why: string, from: 'buffered' | null = 'buffered'): void {
    this.forget([item]);
    this.shared.counters.drop(from, this.describeEnd(item, 1, 0), why);
    const code = this.closed ? 'PERF_ERR_STORE' : 'PERF_ERR_DEFER_FULL';
    item.ended(new PerfError(code, `"${item.parcel.name}" was not stored: ${why}.`));
  }

  /** Releases their capacity. */
  forget(items: readonly OutboxItem<P>[]): void {
    for (const item of items) item.isOver = true;
    const inMemory = items.filter(({ hasCapacity }) => hasCapacity);
    const bytes = inMemory.reduce((sum, item) => sum + item.bytes, 0);
    this.capacity.release(bytes, inMemory.length);
  }

  private describeEnd({ parcel, acceptedMs }: OutboxItem<P>, attempt: number, runMs: number): Ended {
    const waitMs = Math.max(0, performance.now() - runMs - acceptedMs);
    return { ...unstarted(parcel.name, parcel, this.durable), waitMs, runMs, attempt };
  }
}

interface JobParcel extends Parcel {
  readonly jobName: string;
  readonly options: object;
}

export class JobOutbox extends Outbox<JobParcel> {
  constructor(
    private readonly queue: JobQueue,
    capacity: Capacity,
    shared: OutboxShared,
  ) {
    super(`jobs for queue "${queue.name}"`, false, capacity, shared);
  }

  /** Null when the policy drops it. @throws PERF_ERR_SERIALIZE, PERF_ERR_DEFER_FULL with `'reject'` */
  arm(jobName: string, data: unknown, options: { jobId?: string } | undefined, { origin, sequence }: Arming) {
    const id = options?.jobId ?? randomUUID();
    const parcel = {
      ...nameOrigin(origin),
      id,
      name: `${this.queue.name}/${jobName}`,
      jobName,
      json: toJson(data, `job "${jobName}" for queue "${this.queue.name}"`),
      options: { ...options, jobId: id },
    };
    return this.armInMemory(parcel, null, sequence);
  }

  /** Drops what the queue has not taken for {@link KEPT_MINUTES}. */
  override retried(items: readonly OutboxItem<JobParcel>[], error: unknown): readonly OutboxItem<JobParcel>[] {
    const keptFromMs = performance.now() - KEPT_MINUTES * 60_000;
    const why = `queue "${this.queue.name}" has not taken it for ${KEPT_MINUTES} minutes`;
    for (const item of items) if (item.acceptedMs < keptFromMs) this.drop(item, why);
    const kept = items.filter(({ isOver }) => !isOver);
    return kept.length === 0 ? kept : super.retried(kept, error);
  }

  /** Waits without a deadline: the client may buffer commands while Redis is away, and would buffer each send more. */
  override store(items: readonly OutboxItem<JobParcel>[]): Promise<unknown> {
    return this.queue.addBulk(
      items.map(({ parcel: { jobName, json, options } }) => ({ name: jobName, data: fromJson(json), opts: options })),
    );
  }
}
