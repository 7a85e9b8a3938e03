import { LinkedList, type Linked } from '../../core/linked-list.js';
import { inRootContext } from '../../core/root-context.js';
import { backoffMs } from '../backoff.js';
import { isServerTrouble } from './server-trouble.js';

/** BullMQ makes a job in up to 45 µs of CPU: 64 hold the loop for 3 ms. */
const MAX_JOBS_A_TURN = 64;
/** More bulks in flight gain nothing and let more of the buffer escape into a stalled connection. */
const MAX_IN_FLIGHT = 4;
const RETRY = { baseMs: 50, maxMs: 2_000 };
/** A send that has neither succeeded nor failed: ioredis may drop a command while it reconnects (redis/ioredis#2194). */
const FIRST_SEND_TIMEOUT_MS = 30_000;
const MAX_SEND_TIMEOUT_MS = 600_000;
/** A bulk that failed this often, while others got through, holds a job that the queue will never take. */
const REFUSED_AFTER = 5;
/** Without others to compare with, only after this long. */
const REFUSED_AFTER_MS = 60_000;

/** When a buffer is sent. */
export interface BatchLimits {
  /** As soon as this many are held. */
  readonly maxJobs: number;
  /** Or when the oldest has waited this long, milliseconds. */
  readonly maxWaitMs: number;
  /** Where all that is sent is one job. @default 64 */
  readonly maxItemsASend?: number;
}

/** What becomes of items. Each item ends in exactly one of `stored` and `refused`, unless it is taken back. */
export interface BulkEvents<T> {
  /** Sends all of them; called again with the same items after a failure. */
  send(items: readonly T[]): Promise<unknown>;
  stored(items: readonly T[], sends: number, sentMs: number): void;
  refused(item: T, sends: number, error: unknown): void;
  /** A send has failed and will be repeated. */
  retried(items: readonly T[], error: unknown): void;
}

interface Bulk<T> extends Linked<Bulk<T>> {
  readonly items: readonly T[];
  sends: number;
  firstFailedMs: number;
  settled: boolean;
  /** Waits for its next attempt, rather than for an answer. */
  backingOff: boolean;
  timer: NodeJS.Timeout | null;
}

/**
 * Micro-batches: items are collected for a few milliseconds and sent as one bulk, a few bulks at a time, no more than
 * a slice a turn of the event loop. A failed bulk is sent again with the same items (and so the same job ids) for as
 * long as the server is in trouble; an item that the server refuses is found by halving its bulk.
 */
export class BulkSender<T> {
  private readonly waiting: T[] = [];
  private readonly inFlight = new LinkedList<Bulk<T>>();
  private timer: NodeJS.Timeout | null = null;
  private immediate: NodeJS.Immediate | null = null;
  /** What is held must leave, whether or not it fills a bulk. */
  private due = false;
  private lastStoredMs = -Infinity;
  private closed = false;

  constructor(
    private readonly limits: BatchLimits,
    private readonly events: BulkEvents<T>,
  ) {}

  add(item: T): void {
    this.waiting.push(item);
    if (this.waiting.length >= this.limits.maxJobs) this.schedule();
    else if (this.timer === null && !this.due) this.startTimer();
  }

  /** Sends what is held without waiting for more, and what waits for its next attempt at once. */
  flush(): void {
    this.due = true;
    this.schedule();
    for (const bulk of this.inFlight.toArray()) {
      if (!bulk.backingOff) continue;
      if (bulk.timer !== null) clearTimeout(bulk.timer);
      this.send(bulk);
    }
  }

  /** The item that has waited longest of those that `may` be dropped, and is not on its way. */
  oldest(may: (item: T) => boolean): T | undefined {
    return this.waiting.find(may);
  }

  /** Takes an item back that is not on its way. */
  take(item: T): void {
    this.waiting.splice(this.waiting.indexOf(item), 1);
  }

  /** Stops; returns what was not stored, and may or may not be on its way. */
  close(): T[] {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.immediate !== null) clearImmediate(this.immediate);
    const left: T[] = [];
    for (const bulk of this.inFlight.toArray()) {
      if (bulk.timer !== null) clearTimeout(bulk.timer);
      bulk.settled = true;
      left.push(...bulk.items);
      this.inFlight.delete(bulk);
    }
    return [...left, ...this.waiting.splice(0)];
  }

  private startTimer(): void {
    this.timer = inRootContext(() => setTimeout(this.onDue, this.limits.maxWaitMs));
    // What is buffered must reach its queue: the timer may keep a process alive for its few milliseconds.
  }

  private readonly onDue = (): void => {
    this.timer = null;
    this.due = true;
    this.turn();
  };

  private schedule(): void {
    if (this.immediate !== null || this.closed) return;
    this.immediate = inRootContext(() => setImmediate(this.turn));
  }

  private readonly turn = (): void => {
    if (this.immediate !== null) clearImmediate(this.immediate);
    this.immediate = null;
    if (this.inFlight.size >= MAX_IN_FLIGHT || this.closed) return;
    if (this.waiting.length === 0) {
      this.due = false;
      return;
    }
    if (!this.due && this.waiting.length < this.limits.maxJobs) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const items = this.waiting.splice(0, Math.min(this.limits.maxItemsASend ?? MAX_JOBS_A_TURN, this.limits.maxJobs));
    this.start({ items, sends: 0, firstFailedMs: Infinity });
    // The rest of a full buffer is a window old as well.
    this.due = this.waiting.length > 0;
    if (this.due) this.schedule();
  };

  private start(begun: Pick<Bulk<T>, 'items' | 'sends' | 'firstFailedMs'>): void {
    const bulk: Bulk<T> = { ...begun, settled: false, backingOff: false, timer: null, previous: null, next: null };
    this.inFlight.add(bulk);
    this.send(bulk);
  }

  private send(bulk: Bulk<T>): void {
    bulk.sends += 1;
    bulk.backingOff = false;
    const startedMs = performance.now();
    const number = bulk.sends;
    const timeoutMs = Math.min(MAX_SEND_TIMEOUT_MS, FIRST_SEND_TIMEOUT_MS * 2 ** (number - 1));
    bulk.timer = setTimeout(() => {
      this.failed(bulk, number, new Error(`the store has not answered within ${timeoutMs} ms`));
    }, timeoutMs).unref();
    let sending: Promise<unknown>;
    try {
      sending = this.events.send(bulk.items);
    } catch (error) {
      sending = Promise.reject(error);
    }
    sending.then(
      () => this.stored(bulk, startedMs),
      (error: unknown) => this.failed(bulk, number, error),
    );
  }

  private stored(bulk: Bulk<T>, startedMs: number): void {
    if (bulk.settled) return;
    this.settle(bulk);
    this.lastStoredMs = performance.now();
    this.events.stored(bulk.items, bulk.sends, this.lastStoredMs - startedMs);
    this.afterSettling();
  }

  private failed(bulk: Bulk<T>, number: number, error: unknown): void {
    // Only the newest send may fail the bulk; an older one that succeeds late still stores it.
    if (bulk.settled || bulk.sends !== number) return;
    if (bulk.timer !== null) clearTimeout(bulk.timer);
    bulk.timer = null;
    bulk.firstFailedMs = Math.min(bulk.firstFailedMs, performance.now());
    if (this.isRefusal(bulk, error)) {
      this.settle(bulk);
      this.refuse(bulk, error);
      this.afterSettling();
      return;
    }
    this.events.retried(bulk.items, error);
    bulk.backingOff = true;
    bulk.timer = inRootContext(() => setTimeout(() => this.send(bulk), backoffMs(bulk.sends, RETRY)).unref());
  }

  private isRefusal(bulk: Bulk<T>, error: unknown): boolean {
    if (bulk.sends < REFUSED_AFTER || isServerTrouble(error)) return false;
    return this.lastStoredMs > bulk.firstFailedMs || performance.now() - bulk.firstFailedMs > REFUSED_AFTER_MS;
  }

  private refuse(bulk: Bulk<T>, error: unknown): void {
    const { items } = bulk;
    if (items.length === 1) {
      this.events.refused(items[0]!, bulk.sends, error);
      return;
    }
    // What the whole has shown holds for its halves: each is refused or halved again on its next failure.
    const half = items.length >> 1;
    const { sends, firstFailedMs } = bulk;
    this.start({ items: items.slice(0, half), sends, firstFailedMs });
    this.start({ items: items.slice(half), sends, firstFailedMs });
  }

  private settle(bulk: Bulk<T>): void {
    if (bulk.timer !== null) clearTimeout(bulk.timer);
    bulk.timer = null;
    bulk.settled = true;
    this.inFlight.delete(bulk);
  }

  private afterSettling(): void {
    if (this.waiting.length > 0) this.schedule();
  }
}
