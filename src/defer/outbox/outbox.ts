import { backoffMs } from '../../core/backoff.js';
import { getOrAdd } from '../../core/get-or-add.js';
import { PerfError } from '../../core/perf.error.js';
import { describeReason } from '../../core/reason.js';
import { inRootContext } from '../../core/root-context.js';
import type { Counters, Ended } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import { countBytes } from '../durable/entry.js';
import { Item, type Room } from '../item.js';
import type { Place } from '../spill/segment.js';
import { isServerTrouble } from './server-trouble.js';

/** BullMQ makes a job in up to 45 µs of CPU: 64 block the loop for 3 ms. */
const MAX_JOBS_A_TURN = 64;
/** More bulks in flight gain nothing and let more of the buffer escape into a stalled connection. */
const MAX_IN_FLIGHT = 4;
const RETRY = { baseMs: 50, maxMs: 2_000 };
/** A bulk that failed this often, while others got through, has a job that the queue will never take. */
const REFUSED_AFTER = 5;
/** Without others to compare with, only after this long. */
const REFUSED_AFTER_MS = 60_000;

/** Data of work that leaves this process: durable work, or a job for the application's own queue. */
export interface Parcel extends Pick<Ended, 'requestId' | 'route'> {
  readonly id: string;
  readonly name: string;
  readonly json: string | undefined;
}

export class OutboxItem<P extends Parcel = Parcel> extends Item {
  diskPlace: Place | null = null;
  written?: Promise<PerfError | null>;

  constructor(
    private readonly outbox: Outbox<P>,
    public parcel: P,
    when: DeferWhen | null = null,
    /** Called with null once it is stored. */
    readonly ended: (error: Error | null) => void = () => {},
  ) {
    super(parcel.name, when, countBytes(parcel.json), outbox.durable, outbox.room, outbox.shared.counters);
  }

  get request(): P {
    return this.parcel;
  }

  protected override accept(): void {
    this.outbox.add(this);
  }

  override discard(): void {
    super.discard();
    this.outbox.forget([this]);
  }

  override drop(why: string): void {
    super.drop(why);
    const code = this.outbox.closed ? 'PERF_ERR_STORE' : 'PERF_ERR_DEFER_FULL';
    this.ended(new PerfError(code, `"${this.name}" was not stored: ${why}.`));
  }
}

/** Items of one group alone may travel in one bulk. */
export interface Group {
  readonly key: string;
  /** A bulk is sent as soon as there are `maxJobs`, or when the oldest has waited `maxWaitMs`. */
  readonly limits: { readonly maxJobs: number; readonly maxWaitMs: number };
  /** A bulk becomes one job of up to `maxJobs` items, for `runBatch`. */
  readonly isOneJob: boolean;
}

export interface OutboxShared {
  readonly limits: Group['limits'];
  readonly counters: Counters;
  readonly report: (cause: string, message: string) => void;
}

/** Items of a group that are not in a bulk yet. */
interface Waiting<I> extends Group {
  readonly items: I[];
  /** They are sent with the next turn, whether or not they fill a bulk. */
  due: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** Items on their way: all of them are stored together, or sent again. */
interface Bulk<I> {
  items: readonly I[];
  sends: number;
  sentMs: number;
  firstFailedMs: number;
  /** Ends its wait for the next attempt; null while the server owes an answer. */
  wake: (() => void) | null;
}

/**
 * A bounded buffer in front of a queue or store: collects items for a few milliseconds, and sends few bulks at a time. A failed bulk
 * is sent again under the same job ids while the server is in trouble; one that the server refuses is sent again item by item.
 */
export abstract class Outbox<P extends Parcel = Parcel> {
  private readonly groups = new Map<string, Waiting<OutboxItem<P>>>();
  private readonly bulks = new Set<Bulk<OutboxItem<P>>>();
  private immediate: NodeJS.Immediate | undefined;
  private lastStoredMs = -Infinity;
  closed = false;

  constructor(
    private readonly title: string,
    /** A worker writes the record when it has run the work. Else the outbox writes one when the work is stored. */
    readonly durable: boolean,
    readonly room: Room,
    readonly shared: OutboxShared,
    /** After so many minutes an item is dropped instead of sent again. */
    private readonly keptMinutes: number,
  ) {}

  /** Resolves when all are stored. Called again with the same items after a failure. */
  protected abstract store(items: readonly OutboxItem<P>[]): Promise<unknown>;

  /** Removes from the disk what is stored, dropped or discarded. */
  forget(_items: readonly OutboxItem<P>[]): void {}

  /** Makes a dead letter of what the store has refused for good. */
  protected reject(_item: OutboxItem<P>, _error: string): void {}

  protected chooseGroup(_parcel: P): Group {
    return { key: '', limits: this.shared.limits, isOneJob: false };
  }

  add(item: OutboxItem<P>): void {
    item.enter('buffered');
    if (!this.closed) this.send(item);
    // An item on disk stays there, and is sent at the next start.
    else if (item.diskPlace === null) item.drop('the application has closed');
  }

  /** Sends all at once: groups that are not full, and bulks that wait for their next attempt. */
  flush(): void {
    for (const waiting of this.groups.values()) waiting.due = true;
    this.schedule();
    for (const { wake } of this.bulks) wake?.();
  }

  /** Stops, drops every item that is not on disk, and returns their names. */
  close(reason: string): string[] {
    this.closed = true;
    clearImmediate(this.immediate);
    for (const { timer } of this.groups.values()) clearTimeout(timer);
    const unsent = [...this.bulks, ...this.groups.values()].flatMap(({ items }) => items);
    for (const { wake } of this.bulks) wake?.();
    this.groups.clear();
    this.bulks.clear();
    const lost = unsent.filter(({ diskPlace }) => diskPlace === null);
    for (const item of lost) item.drop(reason);
    return lost.map(({ name }) => name);
  }

  protected send(item: OutboxItem<P>): void {
    const group = this.chooseGroup(item.parcel);
    const waiting = getOrAdd(this.groups, group.key, () => ({ ...group, items: [], due: false, timer: undefined }));
    item.waitsIn = waiting.items;
    waiting.items.push(item);
    if (isFull(waiting)) return this.schedule();
    const due = (): void => {
      waiting.due = true;
      this.turn();
    };
    // Buffered items must reach their queue: the timer may keep a process alive for its few milliseconds.
    if (!waiting.due) waiting.timer ??= inRootContext(() => setTimeout(due, waiting.limits.maxWaitMs));
  }

  private schedule(): void {
    if (!this.closed) this.immediate ??= inRootContext(() => setImmediate(this.turn));
  }

  /** Sends one bulk of the first group that is due; the rest of the group goes behind the others. */
  private readonly turn = (): void => {
    clearImmediate(this.immediate);
    this.immediate = undefined;
    if (this.bulks.size >= MAX_IN_FLIGHT || this.closed) return;
    for (const [key, waiting] of this.groups) {
      if (!waiting.due && !isFull(waiting)) continue;
      const { items, limits, isOneJob } = waiting;
      clearTimeout(waiting.timer);
      waiting.timer = undefined;
      const bulk = items.splice(0, isOneJob ? limits.maxJobs : Math.min(MAX_JOBS_A_TURN, limits.maxJobs));
      this.groups.delete(key);
      // The rest has waited for as long as the bulk: it gets no new timer.
      waiting.due = true;
      if (items.length > 0) this.groups.set(key, waiting);
      if (bulk.length > 0) void this.deliver(bulk);
      if (this.groups.size > 0) this.schedule();
      return;
    }
  };

  /** `sends` and `firstFailedMs`: history of the bulk that an item was split from, so that its next failure can be its last. */
  private async deliver(items: readonly OutboxItem<P>[], sends = 0, firstFailedMs = Infinity): Promise<void> {
    const bulk: Bulk<OutboxItem<P>> = { items, sends, sentMs: 0, firstFailedMs, wake: null };
    this.bulks.add(bulk);
    for (const item of items) {
      item.waitsIn = null;
      this.room.pin(item);
    }
    while (!this.closed && bulk.items.length > 0) {
      const failure = await this.sendOnce(bulk);
      if (this.closed) return;
      if (failure === null) {
        this.finish(bulk);
        break;
      }
      bulk.firstFailedMs = Math.min(bulk.firstFailedMs, performance.now());
      if (this.isRefusal(bulk, failure.error)) {
        this.refuse(bulk, failure.error);
        break;
      }
      this.dropExpired(bulk);
      if (bulk.items.length === 0) break;
      this.reportRetry(bulk, failure.error);
      await backOff(bulk);
    }
    this.bulks.delete(bulk);
    if (this.groups.size > 0) this.schedule();
  }

  private async sendOnce(bulk: Bulk<OutboxItem<P>>): Promise<{ readonly error: unknown } | null> {
    bulk.sends += 1;
    bulk.sentMs = performance.now();
    try {
      await this.store(bulk.items);
      return null;
    } catch (error) {
      return { error };
    }
  }

  private finish({ items, sends, sentMs }: Bulk<OutboxItem<P>>): void {
    const { counters } = this.shared;
    this.lastStoredMs = performance.now();
    for (const item of items) {
      if (!this.durable) counters.record(item.describeEnd(sentMs, this.lastStoredMs - sentMs, sends), 'completed');
      item.enter('stored');
      item.isOver = true;
      this.room.release(item);
    }
    this.forget(items);
    for (const item of items) item.ended(null);
  }

  private dropExpired(bulk: Bulk<OutboxItem<P>>): void {
    const keptFromMs = performance.now() - this.keptMinutes * 60_000;
    for (const item of bulk.items) {
      if (item.acceptedMs < keptFromMs) item.drop(`its queue has not taken it for ${this.keptMinutes} minutes`);
    }
    bulk.items = bulk.items.filter(({ isOver }) => !isOver);
  }

  private reportRetry({ items }: Bulk<OutboxItem<P>>, error: unknown): void {
    const { keptMinutes, shared } = this;
    shared.counters.retried += items.length;
    const isKept = keptMinutes === Infinity ? 'All is kept' : `All is kept for ${keptMinutes} minutes`;
    const advice = isServerTrouble(error)
      ? `${isKept}, and sent again under the same ids.`
      : 'It is sent again. A job that is refused while others are stored is given up, and reported by its name.';
    const cause = `${this.title} could not be stored: ${describeReason(error)}`;
    shared.report(cause, `${cause}. ${advice}`);
  }

  private isRefusal({ sends, firstFailedMs }: Bulk<OutboxItem<P>>, error: unknown): boolean {
    if (sends < REFUSED_AFTER || isServerTrouble(error)) return false;
    return this.lastStoredMs > firstFailedMs || performance.now() - firstFailedMs > REFUSED_AFTER_MS;
  }

  private refuse({ items, sends, firstFailedMs }: Bulk<OutboxItem<P>>, error: unknown): void {
    if (items.length > 1) for (const item of items) void this.deliver([item], sends, firstFailedMs);
    else this.giveUp(items[0]!, sends, error);
  }

  private giveUp(item: OutboxItem<P>, sends: number, error: unknown): void {
    this.reject(item, describeReason(error));
    this.room.release(item);
    item.end('failed', error, item.describeEnd(null, 0, sends));
    item.ended(error instanceof Error ? error : new Error(describeReason(error)));
  }
}

async function backOff(bulk: Bulk<unknown>): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, backoffMs(bulk.sends, RETRY)).unref();
    bulk.wake = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  bulk.wake = null;
}

const isFull = ({ items, limits }: Waiting<unknown>): boolean => items.length >= limits.maxJobs;
