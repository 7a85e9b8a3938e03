import { AsyncResource } from 'node:async_hooks';
import { inRootContext } from '../../core/root-context.js';
import type { BatchItem, DeferWhen, DeferredBatchWork } from '../deferred-work.js';
import type { Ended } from '../counters.js';
import type { Armed } from '../request-work.js';
import type { BatchOptions } from '../work-options.js';
import type { TaskQueue } from './task-queue.js';
import { TaskSequence, type Task, type TaskRun, type TaskSpec } from './task.js';

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
    this.lane.queue.capacity.release();
  }
}

/** Items that run, fail and are tried again together. */
class Batch implements Task {
  previous: Task | null = null;
  next: Task | null = null;
  readonly id: string;
  readonly size: number;
  readonly requestId = null;
  readonly status = null;
  readonly traceparent = null;
  readonly resource = new AsyncResource('PerfDeferredBatch');
  attempt = 0;

  constructor(
    readonly sequence: BatchLane,
    private readonly items: readonly LaneItem[],
  ) {
    this.id = items[0]!.id;
    this.size = items.length;
  }

  get spec(): TaskSpec {
    return this.sequence.spec;
  }

  begin(): TaskRun {
    this.attempt += 1;
    return ({ info }) => this.sequence.work.runBatch(this.items, info);
  }

  release(): void {}

  ended(startedMs: number | null, runMs: number): Ended[] {
    return this.items.map((item) => this.sequence.endedOf(item, startedMs, runMs, this.attempt));
  }
}

/** Collects the items of one work with `runBatch`. One batch runs at a time: what comes meanwhile makes the next one. */
class BatchLane extends TaskSequence {
  private readonly waiting: LaneItem[] = [];
  private timer: NodeJS.Timeout | null = null;
  /** What waits must run, whether or not it fills a batch. */
  private due = false;

  constructor(
    readonly work: DeferredBatchWork,
    readonly key: string,
    readonly spec: TaskSpec,
    private readonly limits: BatchOptions,
    readonly queue: TaskQueue,
  ) {
    super();
  }

  override get isEmpty(): boolean {
    return this.waiting.length < (this.due ? 1 : this.limits.maxItems);
  }

  override shift(): Batch | null {
    if (this.isEmpty) return null;
    this.stopTimer();
    const items = this.waiting.splice(0, this.limits.maxItems);
    this.due = this.waiting.length > 0;
    return new Batch(this, items);
  }

  /** Takes over an item that has its capacity. */
  add(item: LaneItem): void {
    item.acceptedMs = performance.now();
    this.queue.counters.accept();
    if (this.queue.closed) return this.drop(item, 'the application has closed');
    this.waiting.push(item);
    if (!this.isEmpty) this.queue.engage(this);
    else this.timer ??= this.startTimer();
  }

  /** Runs what waits without waiting for more. */
  readonly flush = (): void => {
    this.stopTimer();
    this.due = this.waiting.length > 0;
    if (this.due) this.queue.engage(this);
  };

  /** Drops the item that has waited longest; false when none waits. */
  dropOldest(): boolean {
    const item = this.waiting.shift();
    if (item !== undefined) this.drop(item, 'newer work took its place');
    return item !== undefined;
  }

  /** Drops what waits; returns its names. */
  close(reason: string): string[] {
    this.stopTimer();
    const left = this.waiting.splice(0);
    for (const item of left) this.drop(item, reason);
    return left.map(() => this.spec.name);
  }

  endedOf({ origin, acceptedMs }: LaneItem, startedMs: number | null, runMs: number, attempt: number): Ended {
    const waitMs = (startedMs ?? performance.now()) - acceptedMs;
    return { name: this.spec.name, ...origin, durable: false, waitMs, runMs, attempt: Math.max(1, attempt) };
  }

  private drop(item: LaneItem, why: string): void {
    this.queue.capacity.release();
    this.queue.counters.drop('pending', this.endedOf(item, null, 0, 1), why);
  }

  private startTimer(): NodeJS.Timeout {
    return inRootContext(() => setTimeout(this.flush, this.limits.maxWaitMs).unref());
  }

  private stopTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

/** The lanes of one application: one for each work with `runBatch`, and for each way in which it is to run. */
export class Batches {
  private readonly lanes: BatchLane[] = [];

  constructor(private readonly queue: TaskQueue) {}

  laneOf(work: DeferredBatchWork, spec: TaskSpec & { readonly batch: BatchOptions }): BatchLane {
    const { name, timeoutMs, attempts, backoffMs, maxBackoffMs, batch } = spec;
    const key = JSON.stringify([name, timeoutMs, attempts, backoffMs, maxBackoffMs, batch]);
    let lane = this.lanes.find((one) => one.work === work && one.key === key);
    if (lane === undefined) this.lanes.push((lane = new BatchLane(work, key, spec, batch, this.queue)));
    return lane;
  }

  flush(): void {
    for (const lane of this.lanes) lane.flush();
  }

  /** Drops an item that waits; false when none does. */
  dropOldest(): boolean {
    return this.lanes.some((lane) => lane.dropOldest());
  }

  /** Drops what waits; returns its names. */
  close(reason: string): string[] {
    return this.lanes.flatMap((lane) => lane.close(reason));
  }
}
