import { AsyncResource } from 'node:async_hooks';
import { inRootContext } from '../../core/root-context.js';
import { namesOf, type Ended, type Origin } from '../counters.js';
import type { BatchItem, DeferWhen, DeferredBatchWork } from '../deferred-work.js';
import type { Armed } from '../request-work.js';
import type { BatchOptions } from '../work-options.js';
import type { TaskQueue } from './task-queue.js';
import { TaskSequence, type Task, type TaskRun, type TaskSpec } from './task.js';

/** One item of work with `runBatch`, from the moment it is armed. */
export class LaneItem implements Armed, BatchItem<unknown> {
  /** Monotonic milliseconds at which the response had ended. */
  private acceptedMs = 0;
  private names = namesOf(null);

  constructor(
    readonly id: string,
    readonly data: unknown,
    readonly when: DeferWhen | null,
    private origin: Origin | null,
    private readonly lane: BatchLane,
  ) {}

  commit(): void {
    this.acceptedMs = performance.now();
    this.names = namesOf(this.origin);
    this.origin = null;
    this.lane.add(this);
  }

  discard(): void {
    this.lane.queue.capacity.release();
  }

  ended(startedMs: number | null = null, runMs = 0, attempt = 1): Ended {
    const { requestId, route } = this.names;
    const waitMs = (startedMs ?? performance.now()) - this.acceptedMs;
    return { name: this.lane.spec.name, requestId, route, durable: false, waitMs, runMs, attempt };
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
    readonly spec: TaskSpec,
    private readonly items: readonly LaneItem[],
  ) {
    this.id = items[0]!.id;
    this.size = items.length;
  }

  begin(): TaskRun {
    this.attempt += 1;
    return (info) => this.sequence.work.runBatch(this.items, info);
  }

  ended(startedMs: number | null, runMs: number): Ended[] {
    return this.items.map((item) => item.ended(startedMs, runMs, Math.max(1, this.attempt)));
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
    return new Batch(this, this.spec, items);
  }

  /** Takes over an item that has its capacity. */
  add(item: LaneItem): void {
    this.queue.counters.move(null, 'waiting');
    if (this.queue.closed) return this.drop(item, 'the application has closed');
    this.waiting.push(item);
    if (!this.isEmpty) this.queue.engage(this);
    else this.timer ??= inRootContext(() => setTimeout(this.flush, this.limits.maxWaitMs).unref());
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

  private drop(item: LaneItem, why: string): void {
    this.queue.capacity.release();
    this.queue.counters.drop('waiting', item.ended(), why);
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
