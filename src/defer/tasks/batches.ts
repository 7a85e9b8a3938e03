import { AsyncResource } from 'node:async_hooks';
import { inRootContext } from '../../core/root-context.js';
import { NEWER } from '../capacity.js';
import type { DeferredBatchWork } from '../deferred-work.js';
import type { WorkOptions } from '../work-options.js';
import type { TaskQueue } from './task-queue.js';
import { Task, TaskSequence, type ArmedWork, type TaskRun, type TaskSpec } from './task.js';

type BatchSpec = TaskSpec & Pick<WorkOptions, 'batch'>;
const KEYS = ['name', 'timeoutMs', 'attempts', 'backoffMs', 'maxBackoffMs', 'batch'] as const;

/** Collects the items of one work with `runBatch`. One batch runs at a time: what comes meanwhile makes the next one. */
export class BatchLane extends TaskSequence {
  private readonly waiting: ArmedWork[] = [];
  private timer: NodeJS.Timeout | undefined;
  /** Waiting items must run, whether or not they fill a batch. */
  private due = false;

  constructor(
    private readonly work: DeferredBatchWork,
    private readonly spec: BatchSpec,
    private readonly queue: TaskQueue,
    /** Names made up for each call would add ever more lanes: an idle one goes. */
    private readonly onIdle: () => void,
  ) {
    super();
  }

  /** Items of one work that run in the same way have one key, and may share a batch. */
  static makeKey(spec: BatchSpec): string {
    return JSON.stringify(KEYS.map((key) => spec[key]));
  }

  override get isEmpty(): boolean {
    return this.waiting.length < (this.due ? 1 : this.spec.batch.maxItems);
  }

  override shift(): Task | null {
    if (this.isEmpty) return null;
    this.stopTimer();
    const items = this.waiting.splice(0, this.spec.batch.maxItems);
    this.due = this.waiting.length > 0;
    const listItems = () => items.map(({ id, data }) => ({ id, data }));
    const run: TaskRun = ({ info }) => this.work.runBatch(listItems(), info);
    return new Task(this.spec, this, items, run, new AsyncResource('PerfDeferredBatch'), true);
  }

  override disengaged(): void {
    if (this.waiting.length === 0 && !this.engaged && this.retrying === null) this.onIdle();
  }

  add(item: ArmedWork): void {
    this.queue.counters.move(null, 'waiting');
    if (this.queue.closed) return this.drop(item, 'the application has closed');
    this.waiting.push(item);
    if (!this.isEmpty) this.queue.engage(this);
    else this.timer ??= inRootContext(() => setTimeout(this.flush, this.spec.batch.maxWaitMs).unref());
  }

  readonly flush = (): void => {
    this.stopTimer();
    this.due = this.waiting.length > 0;
    if (this.due) this.queue.engage(this);
    else this.disengaged();
  };

  get oldestMs(): number {
    return this.waiting[0]?.acceptedMs ?? Infinity;
  }

  dropOldest(): boolean {
    const item = this.waiting.shift();
    if (item !== undefined) this.drop(item, NEWER);
    return item !== undefined;
  }

  close(reason: string): string[] {
    this.stopTimer();
    const left = this.waiting.splice(0);
    for (const item of left) this.drop(item, reason);
    return left.map(() => this.spec.name);
  }

  private drop(item: ArmedWork, why: string): void {
    this.queue.capacity.release();
    this.queue.counters.drop('waiting', item.describeEnd(), why);
  }

  private stopTimer(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
