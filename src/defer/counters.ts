import { reasonOf } from '../core/reason.js';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { DeferStats } from '../core/snapshot.js';

/** Names what ended, for a record. */
export type Ended = Omit<DeferredRecord, 'kind' | 'at' | 'outcome' | 'error'>;

/** What has not begun. */
export const unstarted = (
  name: string,
  of: { readonly requestId: string | null; readonly route: string | null },
  durable: boolean,
): Ended => ({ name, requestId: of.requestId, route: of.route, durable, waitMs: 0, runMs: 0, attempt: 1 });

/** Where an item stood: `buffered` is pending on its way to a queue or store, `new` is not counted yet. */
type Standing = 'new' | 'pending' | 'buffered' | 'running';

/**
 * Counts every item from acceptance to its end. Each method keeps
 * `accepted = completed + failed + dropped + pending + running`; `buffered` items are among the pending,
 * `stored` ones among the completed.
 */
export class Counters {
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

  whenIdle(): Promise<void> {
    if (this.idle) return Promise.resolve();
    return new Promise((resolve) => this.waiters.push(resolve));
  }

  close(): void {
    this.closed = true;
    this.announceIdle();
  }

  /** `buffered`: they leave this process. */
  accept(items = 1, buffered = false): void {
    this.counts.accepted += items;
    this.counts.pending += items;
    if (buffered) this.counts.buffered += items;
  }

  start(items: number): void {
    this.counts.pending -= items;
    this.counts.running += items;
  }

  /** They wait for their next attempt. */
  retry(items: number): void {
    this.counts.running -= items;
    this.counts.pending += items;
    this.counts.retried += items;
  }

  /** A bulk that is sent again. */
  resend(items: number): void {
    this.counts.retried += items;
  }

  /** Buffered items that their queue or store has taken over. */
  store(items: number): void {
    this.counts.pending -= items;
    this.counts.buffered -= items;
    this.counts.completed += items;
    this.counts.stored += items;
    this.announceIdle();
  }

  /** Items have run. Without `item` there is no record. */
  complete(items: number, item: Ended | null = null): void {
    this.counts.running -= items;
    this.counts.completed += items;
    if (item !== null) this.record(item, 'completed', null);
    this.announceIdle();
  }

  /** `new`: its data could not be prepared. */
  fail(from: Standing, item: Ended, error: unknown, outcome: 'failed' | 'timeout' = 'failed'): void {
    this.leave(from);
    this.counts.failed += 1;
    this.tellFailure(item, outcome, error);
    this.announceIdle();
  }

  /** `new`: refused at once. It counts as accepted, so that nothing goes uncounted. */
  drop(from: Standing, item: Ended, why: string): void {
    this.leave(from);
    this.counts.dropped += 1;
    this.record(item, 'dropped', why);
    const message = `deferred work "${item.name}" dropped: ${why}`;
    this.report.report(message, `${message}.`);
    this.announceIdle();
  }

  /**
   * An attempt of a worker. The job was counted where it was stored, in whichever process: here only a failure counts,
   * as one item more.
   */
  ran(item: Ended, outcome: 'completed' | 'failed' | 'timeout', error: unknown, again: boolean): void {
    // It was put back when the application closed.
    if (this.closed) return;
    if (outcome === 'completed') this.record(item, 'completed', null);
    else if (!again) this.fail('new', item, error, outcome);
    else {
      this.counts.retried += 1;
      this.tellFailure(item, outcome, error);
    }
  }

  record(item: Ended, outcome: DeferredRecord['outcome'], error: string | null): void {
    this.publish?.({ kind: 'deferred', at: Date.now(), ...item, outcome, error });
  }

  private leave(from: Standing): void {
    if (from === 'new') this.counts.accepted += 1;
    else if (from === 'running') this.counts.running -= 1;
    else this.counts.pending -= 1;
    if (from === 'buffered') this.counts.buffered -= 1;
  }

  private tellFailure(item: Ended, outcome: 'failed' | 'timeout', error: unknown): void {
    const reason = reasonOf(error);
    this.record(item, outcome, reason);
    const cause = `deferred work "${item.name}" ${outcome === 'timeout' ? 'timed out' : 'failed'}: ${reason}`;
    this.report.report(cause, `${cause} (attempt ${item.attempt}). The response was not affected.`);
  }

  private announceIdle(): void {
    if (this.waiters.length === 0 || !this.idle) return;
    for (const resolve of this.waiters.splice(0)) resolve();
  }
}
