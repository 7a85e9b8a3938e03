import { getOrAdd } from '../../core/get-or-add.js';
import { inRootContext } from '../../core/root-context.js';
import { backoffMs } from '../../core/backoff.js';

/** BullMQ makes a job in up to 45 µs of CPU: 64 block the loop for 3 ms. */
const MAX_JOBS_A_TURN = 64;
/** More bulks in flight gain nothing and let more of the buffer escape into a stalled connection. */
const MAX_IN_FLIGHT = 4;
const RETRY = { baseMs: 50, maxMs: 2_000 };
/** A bulk that failed this often, while others got through, has a job that the queue will never take. */
const REFUSED_AFTER = 5;
/** Without others to compare with, only after this long. */
const REFUSED_AFTER_MS = 60_000;

export interface BatchLimits {
  /** As soon as there are this many. */
  readonly maxJobs: number;
  /** Or when the oldest has waited this long, milliseconds. */
  readonly maxWaitMs: number;
}

/** Items of one group alone may travel in one bulk. */
export interface Group {
  readonly key: string;
  readonly limits: BatchLimits;
  /** A bulk of them becomes one job, of up to `maxJobs` items. */
  readonly isOneJob: boolean;
}

/** Callbacks for the end of items. Each item ends in exactly one of `stored` and `refused`, unless it is taken back or `retried` leaves it out. */
export interface BulkEvents<T> {
  /** Called again with the same items after a failure. */
  store(items: readonly T[]): Promise<unknown>;
  stored(items: readonly T[], sends: number, sentMs: number): void;
  refused(item: T, sends: number, error: unknown): void;
  /** Called after a failure; returns those that are sent again. */
  retried(items: readonly T[], error: unknown): readonly T[];
}

/** Items of a group that are not on their way. */
interface Waiting<T> extends Group {
  readonly items: T[];
  /** They must be sent, whether or not they fill a bulk. */
  due: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** Items on their way: all of them are stored together, or sent again. */
interface Bulk<T> {
  items: readonly T[];
  sends: number;
  sentMs: number;
  firstFailedMs: number;
  /** Ends its wait for the next attempt; null while it waits for an answer. */
  wake: (() => void) | null;
}

/**
 * Micro-batches: items are collected for a few milliseconds and sent as one bulk, a few bulks at a time, no more than
 * a slice a turn of the event loop. A failed bulk is sent again with the same items (and so the same job ids) for as
 * long as the server is in trouble; the items of a bulk that the server refuses are sent one by one.
 */
export class BulkSender<T> {
  /** By key; a group is here while items of it wait. */
  private readonly groups = new Map<string, Waiting<T>>();
  private readonly bulks = new Set<Bulk<T>>();
  private immediate: NodeJS.Immediate | undefined;
  private lastStoredMs = -Infinity;
  private closed = false;

  constructor(private readonly events: BulkEvents<T>) {}

  add(item: T, group: Group): void {
    const waiting = getOrAdd(this.groups, group.key, () => ({ ...group, items: [], due: false, timer: undefined }));
    waiting.items.push(item);
    if (isFull(waiting)) return this.schedule();
    const due = (): void => {
      waiting.due = true;
      this.turn();
    };
    // Buffered items must reach their queue: the timer may keep a process alive for its few milliseconds.
    if (!waiting.due) waiting.timer ??= inRootContext(() => setTimeout(due, waiting.limits.maxWaitMs));
  }

  /** Sends all at once: what waits for more, and what waits for its next attempt. */
  flush(): void {
    for (const waiting of this.groups.values()) waiting.due = true;
    this.schedule();
    for (const { wake } of this.bulks) wake?.();
  }

  /** In each group, the item that has waited longest among those not on their way that `may` be taken back. */
  oldest(may: (item: T) => boolean): T[] {
    return Array.from(this.groups.values(), ({ items }) => items.find(may)).filter((item) => item !== undefined);
  }

  takeBack(item: T): void {
    for (const { items } of this.groups.values()) {
      const at = items.indexOf(item);
      if (at >= 0) items.splice(at, 1);
    }
  }

  /** Stops; returns what was not stored, and may or may not be on its way. */
  close(): T[] {
    this.closed = true;
    clearImmediate(this.immediate);
    for (const { timer } of this.groups.values()) clearTimeout(timer);
    const waiting = Array.from(this.groups.values(), ({ items }) => items).flat();
    const sent = Array.from(this.bulks, ({ items }) => items).flat();
    for (const { wake } of this.bulks) wake?.();
    this.groups.clear();
    this.bulks.clear();
    return [...sent, ...waiting];
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
  private async deliver(items: readonly T[], sends = 0, firstFailedMs = Infinity): Promise<void> {
    const bulk: Bulk<T> = { items, sends, sentMs: 0, firstFailedMs, wake: null };
    this.bulks.add(bulk);
    for (;;) {
      const failure = await this.send(bulk);
      if (this.closed) return;
      if (failure === null) break;
      bulk.firstFailedMs = Math.min(bulk.firstFailedMs, performance.now());
      if (this.isRefusal(bulk, failure.error)) {
        this.leave(bulk);
        return this.refuse(bulk, failure.error);
      }
      bulk.items = this.events.retried(bulk.items, failure.error);
      if (bulk.items.length === 0) return this.leave(bulk);
      await backOff(bulk);
      if (this.closed) return;
    }
    this.leave(bulk);
    this.lastStoredMs = performance.now();
    this.events.stored(bulk.items, bulk.sends, this.lastStoredMs - bulk.sentMs);
  }

  /** Resolves with null when they are stored. */
  private async send(bulk: Bulk<T>): Promise<{ readonly error: unknown } | null> {
    bulk.sends += 1;
    bulk.sentMs = performance.now();
    try {
      await this.events.store(bulk.items);
      return null;
    } catch (error) {
      return { error };
    }
  }

  private leave(bulk: Bulk<T>): void {
    this.bulks.delete(bulk);
    if (this.groups.size > 0) this.schedule();
  }

  private isRefusal(bulk: Bulk<T>, error: unknown): boolean {
    if (bulk.sends < REFUSED_AFTER || isServerTrouble(error)) return false;
    return this.lastStoredMs > bulk.firstFailedMs || performance.now() - bulk.firstFailedMs > REFUSED_AFTER_MS;
  }

  private refuse({ items, sends, firstFailedMs }: Bulk<T>, error: unknown): void {
    if (items.length === 1) return this.events.refused(items[0]!, sends, error);
    for (const item of items) void this.deliver([item], sends, firstFailedMs);
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

/** Error names and codes of a server or connection in trouble: sockets, ioredis, node-redis, BullMQ. */
const NAMES = new Set(['MaxRetriesPerRequestError', 'AbortError', 'ConnectionClosedError', 'ClusterAllFailedError']);
const CODES = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|NR_CLOSED|CONNECTION_)/;
/** Redis' replies about its own state or our rights. Up to Redis 6.2 a script's error is inside another, behind `: -`. */
const REPLIES =
  /(?:^|: -)(LOADING|READONLY|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|OOM|MISCONF|NOREPLICAS|BUSY|NOAUTH|WRONGPASS|NOPERM|NOSCRIPT|MOVED|ASK|CROSSSLOT|EXECABORT|UNKILLABLE)\b/;
const TEXTS =
  /connection (is|was)? ?closed|stream isn't writeable|has not answered|timed out|user executing the script can't|max number of clients reached|cluster redirections|cluster isn't ready|startup nodes/i;

/** Whether an error speaks of the server rather than of the job: the job is sent again then. */
export function isServerTrouble(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return (
    NAMES.has(error.name) ||
    (typeof code === 'string' && CODES.test(code)) ||
    REPLIES.test(error.message) ||
    TEXTS.test(error.message)
  );
}
