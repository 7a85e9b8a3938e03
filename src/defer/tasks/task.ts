import type { AsyncResource } from 'node:async_hooks';
import type { Linked } from '../../core/linked-list.js';
import type { Capacity } from '../capacity.js';
import { namesOf, unstarted, type Counters, type Ended, type Origin } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import type { Armed } from '../armed.js';
import type { Running, Told } from './attempt.js';
import type { WorkOptions } from '../work-options.js';

export interface TaskSpec extends Pick<WorkOptions, 'timeoutMs' | 'attempts' | 'backoffMs' | 'maxBackoffMs'> {
  readonly name: string;
}

export type TaskRun = (attempt: Running) => unknown;

/** One item of in-process work, from the moment it is armed. */
export class ArmedWork implements Armed {
  /** Final status of the response; null outside a request. */
  status: number | null = null;
  names = namesOf(null);
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = 0;

  constructor(
    readonly id: string,
    readonly spec: TaskSpec,
    readonly when: DeferWhen | null,
    private origin: Origin | null,
    private readonly queue: { readonly capacity: Capacity; readonly counters: Counters },
    private accept: ((item: ArmedWork) => void) | null,
    readonly data?: unknown,
  ) {}

  /** Lets go of the request: a backlog of work must not be a backlog of requests and sockets. */
  commit(status: number | null): void {
    const { accept } = this;
    this.status = status;
    this.acceptedMs = performance.now();
    this.names = namesOf(this.origin);
    this.origin = this.accept = null;
    accept?.(this);
  }

  get name(): string {
    return this.spec.name;
  }

  get holds(): Capacity {
    return this.queue.capacity;
  }

  discard(): void {
    this.holds.release();
  }

  drop(why: string): void {
    this.discard();
    this.queue.counters.drop(null, unstarted(this.spec.name, namesOf(this.origin), false), why);
  }

  /** Its name and figures, for a record. `startedMs` null: it has not started. */
  endedOf(startedMs: number | null = null, runMs = 0, attempt = 1): Ended {
    const { requestId, route } = this.names;
    const waitMs = (startedMs ?? performance.now()) - this.acceptedMs;
    return { name: this.spec.name, requestId, route, durable: false, waitMs, runMs, attempt: Math.max(1, attempt) };
  }
}

const OF_MANY = { status: null, names: namesOf(null) };

/** Unit of the queue of this process: one item, or a batch that runs, fails and is tried again together. */
export class Task implements Linked<Task> {
  previous: Task | null = null;
  next: Task | null = null;
  attempt = 0;

  constructor(
    readonly spec: TaskSpec,
    readonly sequence: TaskSequence,
    private readonly items: readonly ArmedWork[],
    private run: TaskRun | null,
    /** The async context that the task runs in. */
    readonly resource: AsyncResource,
    private readonly of: Pick<ArmedWork, 'status' | 'names'> = OF_MANY,
  ) {}

  get size(): number {
    return this.items.length;
  }

  get acceptedMs(): number {
    return this.items[0]!.acceptedMs;
  }

  /** The arguments of the present attempt. */
  get told(): Told {
    const { status, names } = this.of;
    const { requestId, traceparent } = names;
    return { id: this.items[0]!.id, attempt: this.attempt, status, requestId, traceparent };
  }

  begin(): TaskRun {
    const run = this.run!;
    this.attempt += 1;
    if (this.attempt >= this.spec.attempts) this.run = null;
    return run;
  }

  /** Name and figures of its items, for records. `startedMs` null: it has not started. */
  ended(startedMs: number | null, runMs: number): Ended[] {
    return this.items.map((item) => item.endedOf(startedMs, runMs, this.attempt));
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

  /** Drops what was armed first of what holds this capacity and is not decided yet; false when there is none. */
  dropArmed(_capacity: Capacity): boolean {
    return false;
  }
}
