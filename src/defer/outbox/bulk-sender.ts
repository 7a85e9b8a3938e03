import { inRootContext } from '../../core/root-context.js';
import { backoffMs } from '../../core/backoff.js';
import { isServerTrouble } from './server-trouble.js';

/** BullMQ makes a job in up to 45 µs of CPU: 64 block the loop for 3 ms. */
const MAX_JOBS_A_TURN = 64;
/** More bulks in flight gain nothing and let more of the buffer escape into a stalled connection. */
const MAX_IN_FLIGHT = 4;
const RETRY = { baseMs: 50, maxMs: 2_000 };
/** A send that has neither succeeded nor failed: ioredis may drop a command while it reconnects (redis/ioredis#2193). */
const SEND_TIMEOUT_MS = 30_000;
/** A bulk that failed this often, while others got through, has a job that the queue will never take. */
const REFUSED_AFTER = 5;
/** Without others to compare with, only after this long. */
const REFUSED_AFTER_MS = 60_000;

export interface BatchLimits {
  /** As soon as there are this many. */
  readonly maxJobs: number;
  /** Or when the oldest has waited this long, milliseconds. */
  readonly maxWaitMs: number;
  /** Upper limit of items in one send, for targets that make one job of them. @default 64 */
  readonly maxItemsASend?: number;
}

/** Callbacks for the end of items. Each item ends in exactly one of `stored` and `refused`, unless it is taken back. */
export interface BulkEvents<T> {
  /** Whether an unanswered bulk is sent again; not where a client may buffer it until its server is back. */
  readonly resendsUnanswered: boolean;
  /** Called again with the same items after a failure. */
  store(items: readonly T[]): Promise<unknown>;
  stored(items: readonly T[], sends: number, sentMs: number): void;
  refused(item: T, sends: number, error: unknown): void;
  retried(items: readonly T[], error: unknown): void;
  /** It is waited for. */
  unanswered(error: Error): void;
}

class Bulk<T> {
  stored = false;
  /** It waits for its next attempt, rather than for an answer. */
  backingOff = false;
  sentMs = 0;
  private timer: NodeJS.Timeout | undefined;
  private wakeUp = (): void => {};

  constructor(
    readonly items: readonly T[],
    public sends = 0,
    public firstFailedMs = Infinity,
  ) {}

  /** Without `ms`, until it is woken. */
  wait(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      this.wakeUp = resolve;
      if (ms !== undefined) this.timer = setTimeout(resolve, ms).unref();
    });
  }

  wake(): void {
    clearTimeout(this.timer);
    this.wakeUp();
  }
}

/**
 * Micro-batches: items are collected for a few milliseconds and sent as one bulk, a few bulks at a time, no more than
 * a slice a turn of the event loop. A failed bulk is sent again with the same items (and so the same job ids) for as
 * long as the server is in trouble; an item that the server refuses is found by halving its bulk.
 */
export class BulkSender<T> {
  private readonly waiting: T[] = [];
  private bulks: Bulk<T>[] = [];
  private timer: NodeJS.Timeout | undefined;
  private immediate: NodeJS.Immediate | undefined;
  /** Waiting items must be sent, whether or not they fill a bulk. */
  private due = false;
  private lastStoredMs = -Infinity;
  private closed = false;

  constructor(
    private readonly limits: BatchLimits,
    private readonly events: BulkEvents<T>,
  ) {}

  get isIdle(): boolean {
    return this.waiting.length === 0 && this.bulks.length === 0;
  }

  add(item: T): void {
    this.waiting.push(item);
    if (this.waiting.length >= this.limits.maxJobs) this.schedule();
    // Buffered items must reach their queue: the timer may keep a process alive for its few milliseconds.
    else if (!this.due) this.timer ??= inRootContext(() => setTimeout(this.onDue, this.limits.maxWaitMs));
  }

  /** Sends all at once: what waits for more, and what waits for its next attempt. */
  flush(): void {
    this.due = true;
    this.schedule();
    for (const bulk of this.bulks) if (bulk.backingOff) bulk.wake();
  }

  /** The item that has waited longest among those not on their way that `may` be taken back. */
  oldest(may: (item: T) => boolean): T | undefined {
    return this.waiting.find(may);
  }

  takeBack(item: T): void {
    this.waiting.splice(this.waiting.indexOf(item), 1);
  }

  /** Stops; returns what was not stored, and may or may not be on its way. */
  close(): T[] {
    this.closed = true;
    clearTimeout(this.timer);
    clearImmediate(this.immediate);
    for (const bulk of this.bulks) bulk.wake();
    return [...this.bulks.splice(0).flatMap(({ items }) => items), ...this.waiting.splice(0)];
  }

  private readonly onDue = (): void => {
    this.due = true;
    this.turn();
  };

  private schedule(): void {
    if (!this.closed) this.immediate ??= inRootContext(() => setImmediate(this.turn));
  }

  private readonly turn = (): void => {
    clearImmediate(this.immediate);
    this.immediate = undefined;
    if (this.bulks.length >= MAX_IN_FLIGHT || this.closed) return;
    if (!this.due && this.waiting.length < this.limits.maxJobs) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    const items = this.waiting.splice(0, Math.min(this.limits.maxItemsASend ?? MAX_JOBS_A_TURN, this.limits.maxJobs));
    if (items.length > 0) void this.deliver(new Bulk(items));
    // The rest of a full buffer is a window old as well.
    this.due = this.waiting.length > 0;
    if (this.due) this.schedule();
  };

  private async deliver(bulk: Bulk<T>): Promise<void> {
    this.bulks.push(bulk);
    while (!bulk.stored) {
      const error = await this.answerTo(bulk);
      if (this.closed) return;
      if (bulk.stored) break;
      bulk.firstFailedMs = Math.min(bulk.firstFailedMs, performance.now());
      if (this.isRefusal(bulk, error)) {
        this.leave(bulk);
        this.refuse(bulk, error);
        return;
      }
      this.events.retried(bulk.items, error);
      bulk.backingOff = true;
      await bulk.wait(backoffMs(bulk.sends, RETRY));
      bulk.backingOff = false;
      if (this.closed) return;
    }
    this.leave(bulk);
    this.lastStoredMs = performance.now();
    this.events.stored(bulk.items, bulk.sends, this.lastStoredMs - bulk.sentMs);
  }

  /** Sends it; resolves when it is stored, and with what has failed. */
  private async answerTo(bulk: Bulk<T>): Promise<unknown> {
    const number = (bulk.sends += 1);
    bulk.sentMs = performance.now();
    const late = new Error(`the store has not answered within ${SEND_TIMEOUT_MS} ms`);
    let error: unknown = late;
    const sending = async (): Promise<unknown> => this.events.store(bulk.items);
    void sending().then(
      // An older send that succeeds late stores it as well; only the newest may fail it.
      () => {
        bulk.stored = true;
        bulk.wake();
      },
      (failure: unknown) => {
        if (bulk.sends !== number || bulk.backingOff) return;
        error = failure;
        bulk.wake();
      },
    );
    await bulk.wait(SEND_TIMEOUT_MS);
    if (this.events.resendsUnanswered || this.closed || bulk.stored || error !== late) return error;
    this.events.unanswered(late);
    await bulk.wait();
    return error;
  }

  private leave(bulk: Bulk<T>): void {
    this.bulks = this.bulks.filter((other) => other !== bulk);
    if (this.waiting.length > 0) this.schedule();
  }

  private isRefusal(bulk: Bulk<T>, error: unknown): boolean {
    if (bulk.sends < REFUSED_AFTER || isServerTrouble(error)) return false;
    return this.lastStoredMs > bulk.firstFailedMs || performance.now() - bulk.firstFailedMs > REFUSED_AFTER_MS;
  }

  private refuse({ items, sends, firstFailedMs }: Bulk<T>, error: unknown): void {
    if (items.length === 1) return this.events.refused(items[0]!, sends, error);
    // The halves keep the sends and the first failure of the whole: each is refused or halved again on its next failure.
    const half = items.length >> 1;
    void this.deliver(new Bulk(items.slice(0, half), sends, firstFailedMs));
    void this.deliver(new Bulk(items.slice(half), sends, firstFailedMs));
  }
}
