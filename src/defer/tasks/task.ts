import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { Linked } from '../../core/linked-list.js';
import { namesOf, type Ended, type Origin } from '../counters.js';
import type { DeferInfo, DeferWhen } from '../deferred-work.js';
import type { Armed } from '../request-work.js';
import type { Attempted } from './attempt.js';
import type { WorkOptions } from '../work-options.js';
import type { TaskQueue } from './task-queue.js';

/** What is known of a task before there is one. */
export interface TaskSpec extends Pick<WorkOptions, 'timeoutMs' | 'attempts' | 'backoffMs' | 'maxBackoffMs'> {
  readonly name: string;
}

export type TaskRun = (info: DeferInfo) => unknown;

/** What the queue of this process runs: one task, or a batch of items. */
export interface Task extends Attempted, Linked<Task> {
  readonly spec: TaskSpec;
  readonly sequence: TaskSequence;
  readonly resource: AsyncResource;
  readonly size: number;
  /** Begins an attempt; returns what it runs. */
  begin(): TaskRun;
  /** Name and figures of its items, for records. `startedMs` null: it has not started. */
  ended(startedMs: number | null, runMs: number): Ended[];
}

/** One piece of in-process work, from the moment it is armed. */
export abstract class ArmedWork implements Armed {
  /** Final status of the response; null outside a request. */
  status: number | null = null;
  /** Monotonic milliseconds at which the response had ended. */
  private acceptedMs = 0;
  protected names = namesOf(null);

  constructor(
    readonly id: string,
    readonly spec: TaskSpec,
    readonly when: DeferWhen | null,
    private origin: Origin | null,
    protected readonly queue: TaskQueue,
  ) {}

  /** Lets go of the request: a backlog of work must not be a backlog of requests and sockets. */
  commit(status: number | null): void {
    this.status = status;
    this.acceptedMs = performance.now();
    this.names = namesOf(this.origin);
    this.origin = null;
    this.accept();
  }

  discard(): void {
    this.queue.capacity.release();
  }

  /** Its name and figures, for a record. `startedMs` null: it has not started. */
  endedOf(startedMs: number | null, runMs: number, attempt: number): Ended {
    const { requestId, route } = this.names;
    const waitMs = (startedMs ?? performance.now()) - this.acceptedMs;
    return { name: this.spec.name, requestId, route, durable: false, waitMs, runMs, attempt: Math.max(1, attempt) };
  }

  protected abstract accept(): void;
}

/** A task. Keeps the async context it was armed in. */
export class DeferTask extends ArmedWork implements Task {
  previous: Task | null = null;
  next: Task | null = null;
  readonly size = 1;
  readonly resource = new AsyncResource('PerfDeferredTask');
  attempt = 0;

  constructor(
    spec: TaskSpec,
    private run: TaskRun | null,
    when: DeferWhen | null,
    origin: Origin | null,
    readonly sequence: TaskSequence,
    queue: TaskQueue,
    id: string = randomUUID(),
  ) {
    super(id, spec, when, origin, queue);
  }

  get requestId(): string | null {
    return this.names.requestId;
  }

  get traceparent(): string | null {
    return this.names.traceparent;
  }

  begin(): TaskRun {
    const run = this.run!;
    this.attempt += 1;
    if (this.attempt >= this.spec.attempts) this.run = null;
    return run;
  }

  ended(startedMs: number | null, runMs: number): Ended[] {
    return [this.endedOf(startedMs, runMs, this.attempt)];
  }

  protected override accept(): void {
    this.queue.accept(this);
  }
}

/** The tasks of one request: they run one after the other, in the order they were armed. */
export class TaskSequence implements Linked<TaskSequence> {
  previous: TaskSequence | null = null;
  next: TaskSequence | null = null;
  private readonly tasks: Task[] = [];
  /** The task that failed and waits for its next attempt: it keeps its place. */
  retrying: Task | null = null;
  /** One of its tasks is running, or it stands in the line of sequences that may run. */
  engaged = false;

  get isEmpty(): boolean {
    return this.tasks.length === 0;
  }

  push(task: Task): void {
    this.tasks.push(task);
  }

  shift(): Task | null {
    return this.tasks.shift() ?? null;
  }

  /** Takes out the task that was armed first and is not decided yet; null when there is none. */
  disarmOldest(): DeferTask | null {
    return null;
  }
}
