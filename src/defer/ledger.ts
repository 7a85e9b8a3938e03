import { printable } from '../core/printable.js';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { DeferStats } from '../core/snapshot.js';

/** Names what ended, for a record. */
export interface Ended {
  readonly name: string;
  readonly requestId: string | null;
  readonly route: string | null;
  /** Left out: false. */
  readonly durable?: boolean;
  readonly waitMs: number;
  readonly runMs: number;
  readonly attempt: number;
}

/**
 * Counts every item from acceptance to its end. Each method keeps
 * `accepted = completed + failed + dropped + pending + running`; `buffered` items are among the pending,
 * `stored` ones among the completed.
 */
export class DeferLedger {
  private readonly counts = {
    pending: 0,
    running: 0,
    accepted: 0,
    completed: 0,
    failed: 0,
    retried: 0,
    dropped: 0,
    buffered: 0,
    stored: 0,
  } satisfies DeferStats;
  private waiters: (() => void)[] = [];
  private closed = false;

  constructor(
    /** Null when nobody listens: then no record is built. */
    private readonly publish: ((record: DeferredRecord) => void) | null,
    private readonly report: OncePerCause,
  ) {}

  stats(): DeferStats {
    return { ...this.counts };
  }

  /** Whether anybody wants records: else none needs to be built. */
  get records(): boolean {
    return this.publish !== null;
  }

  /** Nothing is pending or running; or what is pending stays on disk, because the application has closed. */
  get idle(): boolean {
    return this.closed || (this.counts.pending === 0 && this.counts.running === 0);
  }

  close(): void {
    this.closed = true;
    this.announceIdle();
  }

  /** Resolves when nothing is pending or running. */
  whenIdle(): Promise<void> {
    if (this.idle) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  accept(items = 1): void {
    this.counts.accepted += items;
    this.counts.pending += items;
  }

  /** Accepts items that leave this process. */
  buffer(items = 1): void {
    this.accept(items);
    this.counts.buffered += items;
  }

  start(items = 1): void {
    this.counts.pending -= items;
    this.counts.running += items;
  }

  retry(items = 1): void {
    this.counts.running -= items;
    this.counts.pending += items;
    this.counts.retried += items;
  }

  /** A bulk that is sent again. */
  resend(items: number): void {
    this.counts.retried += items;
  }

  /** A task has run. `item` may be null when no record is wanted. */
  complete(item: Ended | null): void {
    this.counts.running -= 1;
    this.counts.completed += 1;
    if (item !== null) this.record(item, 'completed', null);
    this.announceIdle();
  }

  fail(item: Ended, outcome: 'failed' | 'timeout', error: unknown): void {
    this.counts.running -= 1;
    this.counts.failed += 1;
    this.failed(item, outcome, error);
    this.announceIdle();
  }

  /** Jobs of the user's own queue, or durable work, that their store has taken over. */
  store(items: number): void {
    this.counts.pending -= items;
    this.counts.buffered -= items;
    this.counts.completed += items;
    this.counts.stored += items;
    this.announceIdle();
  }

  /** A buffered item that its store refuses for good. */
  refuse(item: Ended, error: unknown): void {
    this.counts.pending -= 1;
    this.counts.buffered -= 1;
    this.counts.failed += 1;
    this.failed(item, 'failed', error);
    this.announceIdle();
  }

  /** An item that fails before it can be queued: its data could not be prepared. */
  failUnqueued(item: Ended, error: unknown): void {
    this.counts.accepted += 1;
    this.counts.failed += 1;
    this.failed(item, 'failed', error);
  }

  /** An accepted item that will not run. */
  drop(item: Ended, why: string, buffered = false): void {
    this.counts.pending -= 1;
    if (buffered) this.counts.buffered -= 1;
    this.dropped(item, why);
    this.announceIdle();
  }

  /** An item that is refused at once; it counts as accepted, so that nothing goes uncounted. */
  dropNew(item: Ended, why: string): void {
    this.counts.accepted += 1;
    this.dropped(item, why);
  }

  /**
   * Records and reports an attempt of a worker. The job was counted where it was stored, in whichever process: here only a
   * failure counts, as one item more.
   */
  ran(item: Ended, outcome: 'completed' | 'failed' | 'timeout', error: unknown, again: boolean): void {
    if (outcome === 'completed') {
      this.completed(item);
      return;
    }
    if (again) this.counts.retried += 1;
    else {
      this.counts.accepted += 1;
      this.counts.failed += 1;
    }
    this.failed(item, outcome, error);
  }

  /** Records what {@link store} has counted, or a worker has done. */
  completed(item: Ended): void {
    this.record(item, 'completed', null);
  }

  private failed(item: Ended, outcome: 'failed' | 'timeout', error: unknown): void {
    const reason = reasonOf(error);
    this.record(item, outcome, reason);
    const cause = `deferred work "${item.name}" ${outcome === 'timeout' ? 'timed out' : 'failed'}: ${reason}`;
    this.report.report(cause, `${cause} (attempt ${item.attempt}). The response was not affected.`);
  }

  private dropped(item: Ended, why: string): void {
    this.counts.dropped += 1;
    this.record(item, 'dropped', why);
    this.report.report(`deferred work "${item.name}" dropped: ${why}`, `deferred work "${item.name}" dropped: ${why}.`);
  }

  private record(item: Ended, outcome: DeferredRecord['outcome'], error: string | null): void {
    if (this.publish === null) return;
    const { durable = false, ...rest } = item;
    this.publish({ kind: 'deferred', at: Date.now(), ...rest, durable, outcome, error });
  }

  private announceIdle(): void {
    if (this.waiters.length === 0 || !this.idle) return;
    const waiters = this.waiters;
    this.waiters = [];
    for (const resolve of waiters) resolve();
  }
}

/** What is worth saying of a failure, on one line: the message, which may hold what a client sent; never a stack. */
export function reasonOf(error: unknown): string {
  try {
    return printable(error instanceof Error ? error.message || error.name : String(error), 300);
  } catch {
    // An object whose `message` or `toString` throws still must not harm us; its type is all that can be said.
    return `an ${typeof error} that cannot be printed`;
  }
}
