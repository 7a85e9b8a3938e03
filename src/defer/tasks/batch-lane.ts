import type { AsyncResource } from 'node:async_hooks';
import { backoffMs } from '../backoff.js';
import type { BatchItem, DeferInfo, DeferWhen } from '../deferred-work.js';
import type { DeferLedger, Ended } from '../ledger.js';
import type { Armed } from '../request-tasks.js';
import type { Room } from '../room.js';
import type { BatchOptions } from '../work-options.js';
import { Attempt, type AttemptOutcome } from './attempt.js';
import type { TaskSpec } from './task.js';

/** One item of work with `runBatch`, from the moment it is armed. */
export class LaneItem implements Armed, BatchItem<unknown> {
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = 0;

  constructor(
    readonly id: string,
    readonly data: unknown,
    readonly when: DeferWhen | null,
    readonly origin: { readonly requestId: string | null; readonly route: string | null },
    private readonly lane: BatchLane,
  ) {}

  commit(): void {
    this.lane.add(this);
  }

  discard(): void {
    this.lane.discard();
  }
}

interface Batch {
  readonly id: string;
  readonly items: readonly LaneItem[];
  attempt: number;
  readonly requestId: null;
  readonly status: null;
  readonly traceparent: null;
}

/**
 * Work of this process that takes many items in one call. One call at a time: what comes meanwhile makes the next batch.
 * A batch that fails is tried again as it was.
 */
export class BatchLane {
  private waiting: LaneItem[] = [];
  private timer: NodeJS.Timeout | null = null;
  private retry: { readonly batch: Batch; readonly timer: NodeJS.Timeout } | null = null;
  private running: Attempt<Batch> | null = null;
  private due = false;
  private closed = false;

  constructor(
    private readonly runBatch: (items: readonly BatchItem<unknown>[], info: DeferInfo) => unknown,
    private readonly spec: TaskSpec,
    private readonly limits: BatchOptions,
    private readonly room: Room,
    private readonly ledger: DeferLedger,
    private readonly root: AsyncResource,
  ) {}

  /** Takes over an item that has its room. */
  add(item: LaneItem): void {
    item.acceptedMs = performance.now();
    this.ledger.accept();
    if (this.closed) {
      this.drop([item], 'the application closed before it was done');
      return;
    }
    this.waiting.push(item);
    if (this.waiting.length >= this.limits.maxItems) this.next();
    else this.timer ??= this.later(() => this.waited(), this.limits.maxWaitMs);
  }

  discard(): void {
    this.room.release();
  }

  /** Runs what waits without waiting for more, and what waits for its next attempt at once. */
  flush(): void {
    this.due = true;
    if (this.retry !== null) this.runAgain();
    else this.next();
  }

  /** Drops the item that has waited longest; false when none waits. */
  dropOldest(): boolean {
    const item = this.waiting.shift();
    if (item === undefined) return false;
    this.drop([item], 'newer work took its place');
    return true;
  }

  /** Ends what runs, drops what waits; returns their names. */
  close(reason: string): string[] {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    const left = [...(this.retry?.batch.items ?? []), ...this.waiting];
    if (this.retry !== null) clearTimeout(this.retry.timer);
    const cut = this.running?.subject.items.length ?? 0;
    this.running?.cut(new Error(reason));
    this.drop(left, reason);
    return Array.from({ length: left.length + cut }, () => this.spec.name);
  }

  private waited(): void {
    this.timer = null;
    this.due = true;
    this.next();
  }

  private next(): void {
    if (this.running !== null || this.retry !== null || this.waiting.length === 0) return;
    if (!this.due && this.waiting.length < this.limits.maxItems) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const items = this.waiting.splice(0, this.limits.maxItems);
    this.due = this.waiting.length > 0;
    this.run({ id: items[0]!.id, items, attempt: 1, requestId: null, status: null, traceparent: null });
  }

  private run(batch: Batch): void {
    const { items } = batch;
    this.room.release(0, items.length);
    this.ledger.start(items.length);
    const attempt = new Attempt(batch, performance.now(), this.settled);
    this.running = attempt;
    attempt.start((info) => this.runBatch(items, info), this.root, this.spec.timeoutMs, this.root);
  }

  private readonly settled = (attempt: Attempt<Batch>, outcome: AttemptOutcome, error: unknown): void => {
    const batch = attempt.subject;
    const { items } = batch;
    this.running = null;
    const ended = (item: LaneItem): Ended => this.endedOf(item, attempt.startedMs, attempt.ranMs, batch.attempt);
    if (outcome === 'completed')
      for (const item of items) this.ledger.complete(this.ledger.records ? ended(item) : null);
    else if (batch.attempt < this.spec.attempts && !this.closed) {
      this.ledger.retry(items.length);
      this.room.fill(0, items.length);
      const { backoffMs: baseMs, maxBackoffMs: maxMs } = this.spec;
      const timer = this.later(() => this.runAgain(), backoffMs(batch.attempt, { baseMs, maxMs }));
      this.retry = { batch, timer };
      return;
    } else for (const item of items) this.ledger.fail(ended(item), outcome, error);
    if (!this.closed) this.next();
  };

  private runAgain(): void {
    const { batch, timer } = this.retry!;
    clearTimeout(timer);
    this.retry = null;
    batch.attempt += 1;
    this.run(batch);
  }

  private drop(items: readonly LaneItem[], why: string): void {
    for (const item of items) {
      this.room.release();
      this.ledger.drop(this.endedOf(item, performance.now(), 0, 1), why);
    }
  }

  private endedOf(item: LaneItem, startedMs: number, runMs: number, attempt: number): Ended {
    const { name } = this.spec;
    return { name, ...item.origin, waitMs: startedMs - item.acceptedMs, runMs, attempt };
  }

  private later(work: () => void, delayMs: number): NodeJS.Timeout {
    return this.root.runInAsyncScope(setTimeout, undefined, work, delayMs).unref();
  }
}
