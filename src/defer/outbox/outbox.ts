import { backoffMs } from '../../core/backoff.js';
import { getOrAdd } from '../../core/get-or-add.js';
import { describeReason } from '../../core/reason.js';
import { inRootContext } from '../../core/root-context.js';
import type { Counters } from '../counters.js';
import type { Room } from '../room.js';
import type { OutboxItem, Parcel } from './outbox-item.js';
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

/** Items of one group alone may travel in one bulk. */
export interface Group {
  readonly key: string;
  /** It is sent as soon as there are this many, or when the oldest has waited this long, milliseconds. */
  readonly limits: { readonly maxJobs: number; readonly maxWaitMs: number };
  /** A bulk of them becomes one job, of up to `maxJobs` items. */
  readonly isOneJob: boolean;
}

export interface OutboxShared {
  readonly limits: Group['limits'];
  readonly counters: Counters;
  readonly report: (cause: string, message: string) => void;
}

/** Items of a group that are not on their way. */
interface Waiting<I> extends Group {
  readonly items: I[];
  /** They must be sent, whether or not they fill a bulk. */
  due: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** Items on their way: all of them are stored together, or sent again. */
interface Bulk<I> {
  items: readonly I[];
  sends: number;
  sentMs: number;
  firstFailedMs: number;
  /** Ends its wait for the next attempt; null while it waits for an answer. */
  wake: (() => void) | null;
}

/**
 * A bounded buffer in front of a queue or store. Items are collected for a few milliseconds and sent as one bulk, a few bulks at a
 * time, no more than a slice a turn of the event loop. A failed bulk is sent again with the same items (and so the same job ids) for as
 * long as the server is in trouble; the items of a bulk that the server refuses are sent one by one.
 */
export abstract class Outbox<P extends Parcel = Parcel> {
  /** By key; a group is here while items of it wait. */
  private readonly groups = new Map<string, Waiting<OutboxItem<P>>>();
  private readonly bulks = new Set<Bulk<OutboxItem<P>>>();
  private immediate: NodeJS.Immediate | undefined;
  private lastStoredMs = -Infinity;
  closed = false;

  constructor(
    /** In reports, for example `jobs for queue "mail"`. */
    private readonly what: string,
    /** A worker writes the record, rather than who stores it. */
    readonly durable: boolean,
    readonly room: Room,
    readonly shared: OutboxShared,
    /** How long an item is sent again, minutes. */
    private readonly keptMinutes: number,
  ) {}

  /** Called again with the same items after a failure. */
  protected abstract store(items: readonly OutboxItem<P>[]): Promise<unknown>;

  /** They are stored, dropped or not wanted. */
  forget(_items: readonly OutboxItem<P>[]): void {}

  /** The store has refused it for good. */
  protected reject(_item: OutboxItem<P>, _error: string): void {}

  protected chooseGroup(_parcel: P): Group {
    return { key: '', limits: this.shared.limits, isOneJob: false };
  }

  add(item: OutboxItem<P>): void {
    item.enter('buffered');
    if (!this.closed) this.send(item);
    // An item on disk stays there, and is sent at the next start.
    else if (item.place === null) item.drop('the application has closed');
  }

  /** Sends all at once: what waits for more, and what waits for its next attempt. */
  flush(): void {
    for (const waiting of this.groups.values()) waiting.due = true;
    this.schedule();
    for (const { wake } of this.bulks) wake?.();
  }

  /** Stops, and drops what is nowhere else, on its way or not; returns its names. */
  close(reason: string): string[] {
    this.closed = true;
    clearImmediate(this.immediate);
    for (const { timer } of this.groups.values()) clearTimeout(timer);
    const unsent = [...this.bulks, ...this.groups.values()].flatMap(({ items }) => items);
    for (const { wake } of this.bulks) wake?.();
    this.groups.clear();
    this.bulks.clear();
    const lost = unsent.filter(({ place }) => place === null);
    for (const item of lost) item.drop(reason);
    return lost.map(({ name }) => name);
  }

  protected send(item: OutboxItem<P>): void {
    const group = this.chooseGroup(item.parcel);
    const waiting = getOrAdd(this.groups, group.key, () => ({ ...group, items: [], due: false, timer: undefined }));
    item.line = waiting.items;
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

  /** Sends one bulk of a group that is due, which then goes behind the others. */
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
      // The rest of a full buffer is a window old as well.
      waiting.due = true;
      if (items.length > 0) this.groups.set(key, waiting);
      if (bulk.length > 0) void this.deliver(bulk);
      if (this.groups.size > 0) this.schedule();
      return;
    }
  };

  /** An item on its own keeps the sends and the first failure of its bulk: its next failure may be its last. */
  private async deliver(items: readonly OutboxItem<P>[], sends = 0, firstFailedMs = Infinity): Promise<void> {
    const bulk: Bulk<OutboxItem<P>> = { items, sends, sentMs: 0, firstFailedMs, wake: null };
    this.bulks.add(bulk);
    for (const item of items) {
      item.line = null;
      this.room.keep(item);
    }
    while (!this.closed && bulk.items.length > 0) {
      const failure = await this.sendOnce(bulk);
      if (this.closed) return;
      if (failure === null) {
        this.stored(bulk);
        break;
      }
      bulk.firstFailedMs = Math.min(bulk.firstFailedMs, performance.now());
      if (this.isRefusal(bulk, failure.error)) {
        this.refuse(bulk, failure.error);
        break;
      }
      this.keep(bulk, failure.error);
      if (bulk.items.length > 0) await backOff(bulk);
    }
    this.bulks.delete(bulk);
    if (this.groups.size > 0) this.schedule();
  }

  /** Resolves with null when they are stored. */
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

  private stored({ items, sends, sentMs }: Bulk<OutboxItem<P>>): void {
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

  /** Keeps them for another attempt, except what has been kept for long. */
  private keep(bulk: Bulk<OutboxItem<P>>, error: unknown): void {
    const { what, keptMinutes, shared } = this;
    const keptFromMs = performance.now() - keptMinutes * 60_000;
    for (const item of bulk.items) {
      if (item.acceptedMs < keptFromMs) item.drop(`its queue has not taken it for ${keptMinutes} minutes`);
    }
    bulk.items = bulk.items.filter(({ isOver }) => !isOver);
    if (bulk.items.length === 0) return;
    shared.counters.retried += bulk.items.length;
    const isKept = keptMinutes === Infinity ? 'All is kept' : `All is kept for ${keptMinutes} minutes`;
    const advice = isServerTrouble(error)
      ? `${isKept}, and sent again under the same ids.`
      : 'It is sent again; a job that is refused while others get through is given up, and named.';
    const cause = `${what} could not be stored: ${describeReason(error)}`;
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
