import type { AsyncResource } from 'node:async_hooks';
import type { Linked } from '../../core/linked-list.js';
import type { PerfError } from '../../core/perf.error.js';
import type { Capacity } from '../capacity.js';
import { nameOrigin, unstarted, type Counters, type Ended, type Origin } from '../counters.js';
import type { DeferWhen } from '../deferred-work.js';
import type { WorkOptions } from '../work-options.js';
import type { Attempt, AttemptDetails } from './attempt.js';

export interface TaskSpec extends Pick<WorkOptions, 'timeoutMs' | 'attempts' | 'backoffMs' | 'maxBackoffMs'> {
  readonly name: string;
}

/** Work that was armed during a request and has its capacity; it is either committed or discarded, once. */
export interface Armed {
  readonly name: string;
  /** Null is the default: success while the request is open, anything once it has been decided. */
  readonly when: DeferWhen | null;
  /** Resolves, and never rejects, when it is on disk, or not in time: with why a route answers 503 then. The answer waits for it. */
  readonly written?: Promise<PerfError | null>;
  /** The capacity that it gives back when it is dropped for newer work; none where it is not dropped. */
  readonly capacity?: Capacity | null;
  drop?(why: string): void;
  commit(status: number | null): void;
  discard(): void;
}

export interface Arming {
  readonly when: DeferWhen | null;
  readonly origin: Origin | null;
  readonly sequence: TaskSequence;
}

export type TaskRun = (attempt: Pick<Attempt<unknown>, 'details' | 'info'>) => unknown;

/** One item of in-process work, from the moment it is armed. */
export class ArmedWork implements Armed {
  /** Final status of the response; null outside a request. */
  status: number | null = null;
  names = nameOrigin(null);
  acceptedMs = 0;

  constructor(
    readonly id: string,
    private readonly spec: TaskSpec,
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
    this.names = nameOrigin(this.origin);
    this.origin = this.accept = null;
    accept?.(this);
  }

  get name(): string {
    return this.spec.name;
  }

  get capacity(): Capacity {
    return this.queue.capacity;
  }

  discard(): void {
    this.capacity.release();
  }

  drop(why: string): void {
    this.discard();
    this.queue.counters.drop(null, unstarted(this.name, nameOrigin(this.origin), false), why);
  }

  /** For its record. `startedMs` null: it has not started. */
  describeEnd(startedMs: number | null = null, runMs = 0, attempt = 1): Ended {
    const waitMs = (startedMs ?? performance.now()) - this.acceptedMs;
    return { ...unstarted(this.name, this.names, false), waitMs, runMs, attempt: Math.max(1, attempt) };
  }
}

/** Unit of the queue of this process: one item, or a batch that runs, fails and is tried again together. */
export class Task implements Linked<Task> {
  previous: Task | null = null;
  next: Task | null = null;
  attempt = 0;

  constructor(
    readonly spec: TaskSpec,
    readonly sequence: TaskSequence,
    readonly items: readonly ArmedWork[],
    private run: TaskRun | null,
    readonly resource: AsyncResource,
    private readonly isBatch = false,
  ) {}

  get size(): number {
    return this.items.length;
  }

  get details(): AttemptDetails {
    const { id, status, names } = this.items[0]!;
    const { requestId, traceparent } = this.isBatch ? nameOrigin(null) : names;
    return { id, attempt: this.attempt, status: this.isBatch ? null : status, requestId, traceparent };
  }

  begin(): TaskRun {
    const run = this.run!;
    this.attempt += 1;
    if (this.attempt >= this.spec.attempts) this.run = null;
    return run;
  }
}

/** The tasks of one request: they run one after the other, in the order they were armed. */
export class TaskSequence implements Linked<TaskSequence> {
  previous: TaskSequence | null = null;
  next: TaskSequence | null = null;
  private readonly tasks: Task[] = [];
  /** The task that failed and waits for its next attempt: it keeps its place. */
  retrying: Task | null = null;
  /** One of its tasks is running, or it is in the line of sequences that may run. */
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

  /** None of its tasks runs or waits for its turn. */
  disengaged(): void {}

  /** Drops the work that was armed first with this capacity and is not decided yet; false when there is none. */
  dropArmed(_capacity: Capacity): boolean {
    return false;
  }
}
