import { AsyncResource } from 'node:async_hooks';
import { inRootContext } from '../../core/root-context.js';
import type { DeferredBatchWork } from '../deferred-work.js';
import type { WorkOptions } from '../work-options.js';
import type { TaskQueue } from './task-queue.js';
import { Task, TaskSequence, type TaskItem, type TaskRun, type TaskSpec } from './task.js';

type BatchSpec = TaskSpec & Pick<WorkOptions, 'batch'>;
const KEYS = ['name', 'timeoutMs', 'attempts', 'backoffMs', 'maxBackoffMs', 'batch'] as const;

/** Collects items of one work with `runBatch`. One batch runs at a time: items that arrive meanwhile make the next one. */
export class BatchLane extends TaskSequence {
  private timer: NodeJS.Timeout | undefined;
  /** Waiting items run with the next turn, whether or not they fill a batch. */
  private due = false;

  constructor(
    private readonly work: DeferredBatchWork,
    private readonly spec: BatchSpec,
    private readonly queue: TaskQueue,
    /** Removes the lane: names made up for each call would add ever more of them. */
    private readonly onIdle: () => void,
  ) {
    super();
  }

  /** Items of one work that run in the same way have one key, and may share a batch. */
  static makeKey(spec: BatchSpec): string {
    return JSON.stringify(KEYS.map((key) => spec[key]));
  }

  /** A full batch, or one that is due. */
  override get hasNext(): boolean {
    return this.waiting.length >= (this.due ? 1 : this.spec.batch.maxItems);
  }

  override push(item: TaskItem): void {
    super.push(item);
    if (!this.hasNext) this.timer ??= inRootContext(() => setTimeout(this.flush, this.spec.batch.maxWaitMs).unref());
  }

  override shift(): Task | null {
    if (!this.hasNext) return null;
    this.stopTimer();
    const items = this.waiting.splice(0, this.spec.batch.maxItems);
    for (const item of items) item.waitsIn = null;
    this.due = this.waiting.length > 0;
    const listItems = () => items.map(({ id, data }) => ({ id, data }));
    const run: TaskRun = ({ info }) => this.work.runBatch(listItems(), info);
    return new Task(this.spec, this, items, run, new AsyncResource('PerfDeferredBatch'), true);
  }

  override becameIdle(): void {
    if (this.waiting.length === 0 && !this.isBusy && this.retrying === null) this.onIdle();
  }

  override dropAll(why: string): string[] {
    this.stopTimer();
    return super.dropAll(why);
  }

  readonly flush = (): void => {
    this.stopTimer();
    this.due = this.waiting.length > 0;
    if (this.due) this.queue.makeReady(this);
    else this.becameIdle();
  };

  private stopTimer(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
