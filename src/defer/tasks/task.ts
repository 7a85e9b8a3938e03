import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { Linked } from '../../core/linked-list.js';
import type { Attempted, Running } from './attempt.js';
import type { DeferWhen } from '../deferred-work.js';
import type { Ended } from '../counters.js';
import type { Armed, Origin } from '../request-work.js';
import type { TaskQueue } from './task-queue.js';

/** What is known of a task before there is one. */
export interface TaskSpec {
  readonly name: string;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
}

/** What a task runs. */
export type TaskRun = (attempt: Running) => unknown;

/** What the queue of this process runs: one task, or a batch of items. */
export interface Task extends Attempted, Linked<Task> {
  readonly spec: TaskSpec;
  readonly sequence: TaskSequence;
  /** What it is run in. */
  readonly resource: AsyncResource;
  /** How many items it stands for. */
  readonly size: number;
  /** Begins an attempt; returns what it runs. */
  begin(): TaskRun;
  /** It goes on asynchronously: lets go of what it need not keep. */
  release(): void;
  /** Name and figures of its items, for records. `startedMs` null: it has not started. */
  ended(startedMs: number | null, runMs: number): Ended[];
}

const OUTSIDE = { id: null, traceparent: null, pattern: null };

/** One piece of in-process work, from the moment it is armed. Keeps the async context it was armed in. */
export class DeferTask implements Armed, Task {
  previous: Task | null = null;
  next: Task | null = null;
  readonly size = 1;
  /** One is made for each deferred task: cheaper than `AsyncResource.bind` and `AsyncLocalStorage.snapshot`. */
  readonly resource = new AsyncResource('PerfDeferredTask');
  /** Final status of the response; null outside a request. */
  status: number | null = null;
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = 0;
  attempt = 0;
  private released: Pick<Origin, 'traceparent' | 'pattern'> & { id: string | null } = OUTSIDE;

  constructor(
    readonly spec: TaskSpec,
    private run: TaskRun | null,
    readonly when: DeferWhen | null,
    private origin: Origin | null,
    readonly sequence: TaskSequence,
    private readonly queue: TaskQueue,
    /** Null: made up when it is read. */
    private ownId: string | null = null,
  ) {}

  get id(): string {
    return (this.ownId ??= randomUUID());
  }

  commit(status: number | null): void {
    this.status = status;
    this.queue.accept(this);
  }

  discard(): void {
    this.queue.capacity.release();
  }

  get requestId(): string | null {
    return this.origin === null ? this.released.id : this.origin.id;
  }

  get traceparent(): string | null {
    return this.origin === null ? this.released.traceparent : this.origin.traceparent;
  }

  begin(): TaskRun {
    const run = this.run!;
    this.attempt += 1;
    if (this.attempt >= this.spec.attempts) this.run = null;
    return run;
  }

  /**
   * It goes on asynchronously: lets go of the request. Work that takes milliseconds would keep thousands of requests
   * alive from one collection of garbage to the next, which costs more than all else that deferring does.
   */
  release(): void {
    if (this.origin === null) return;
    const { id, traceparent, pattern } = this.origin;
    this.released = { id, traceparent, pattern };
    this.origin = null;
  }

  ended(startedMs: number | null, runMs: number): [Ended] {
    const ended = {
      name: this.spec.name,
      requestId: this.requestId,
      route: (this.origin ?? this.released).pattern,
      durable: false,
      waitMs: (startedMs ?? performance.now()) - this.acceptedMs,
      runMs,
      attempt: Math.max(1, this.attempt),
    };
    return [ended];
  }
}

/** The tasks of one request: they run one after the other, in the order they were armed. */
export class TaskSequence implements Linked<TaskSequence> {
  previous: TaskSequence | null = null;
  next: TaskSequence | null = null;
  /** Made when there is one. */
  private tasks: DeferTask[] | null = null;
  /** The task that failed and waits for its next attempt: it keeps its place. */
  retrying: Task | null = null;
  /** One of its tasks is running, or it stands in the line of sequences that may run. */
  engaged = false;

  /** Nothing of it can start. */
  get isEmpty(): boolean {
    return this.tasks === null || this.tasks.length === 0;
  }

  push(task: DeferTask): void {
    (this.tasks ??= []).push(task);
  }

  /** Takes out the task that was armed first and is not decided yet; null when there is none. */
  disarmOldest(): DeferTask | null {
    return null;
  }

  shift(): Task | null {
    return this.tasks?.shift() ?? null;
  }
}
