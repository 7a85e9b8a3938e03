import { AsyncResource } from 'node:async_hooks';
import type { Attempted } from './attempt.js';
import type { DeferInfo, DeferWhen } from '../deferred-work.js';
import type { Ended } from '../ledger.js';
import type { Armed } from '../request-tasks.js';

/** What is known of a task before there is one. */
export interface TaskSpec {
  readonly name: string;
  readonly timeoutMs: number;
  readonly attempts: number;
}

/** What a task runs. */
export type TaskRun = (info: DeferInfo) => unknown;

/** Where a task goes when it has been decided whether it runs. */
export interface TaskTaker {
  accept(task: DeferTask): void;
  discard(task: DeferTask): void;
}

/** The request that armed something. Its id is built when it is first read, and most are never read. */
export interface Origin {
  readonly id: string;
}

/** One piece of in-process work, from the moment it is armed. Keeps the async context it was armed in. */
export class DeferTask implements Armed, Attempted {
  /** `new AsyncResource` costs 0.2 µs; `AsyncResource.bind` and `AsyncLocalStorage.snapshot` 2 to 18 µs. */
  readonly resource = new AsyncResource('PerfDeferredTask');
  /** Final status of the response; null outside a request. */
  status: number | null = null;
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = 0;
  attempt = 0;
  // Places in two lists: of all that wait, and of those of its own request.
  older: DeferTask | null = null;
  newer: DeferTask | null = null;
  next: DeferTask | null = null;
  private builtId: string | null = null;

  constructor(
    readonly spec: TaskSpec,
    private run: TaskRun | null,
    readonly when: DeferWhen | null,
    private origin: Origin | null,
    readonly sequence: TaskSequence,
    private readonly taker: TaskTaker,
  ) {}

  commit(status: number | null): void {
    this.status = status;
    this.taker.accept(this);
  }

  discard(): void {
    this.taker.discard(this);
  }

  get requestId(): string | null {
    return this.origin === null ? this.builtId : this.origin.id;
  }

  /** Begins an attempt; returns what it runs. */
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
    this.builtId = this.requestId;
    this.origin = null;
  }

  /** Its name and figures for a record. */
  ended(startedMs: number | null, runMs: number): Ended {
    return {
      name: this.spec.name,
      requestId: this.requestId,
      waitMs: (startedMs ?? performance.now()) - this.acceptedMs,
      runMs,
      attempt: Math.max(1, this.attempt),
    };
  }
}

/** The tasks of one request: they run one after the other, in the order they were armed. */
export class TaskSequence {
  private first: DeferTask | null = null;
  private last: DeferTask | null = null;
  /** The task that failed and waits for its next attempt: it keeps its place. */
  retrying: DeferTask | null = null;
  /** One of its tasks is running, or it stands in the line of sequences that may run. */
  engaged = false;
  /** Behind it in that line. */
  next: TaskSequence | null = null;

  get isEmpty(): boolean {
    return this.first === null;
  }

  push(task: DeferTask): void {
    if (this.last === null) this.first = task;
    else this.last.next = task;
    this.last = task;
  }

  shift(): DeferTask | null {
    const task = this.first;
    if (task === null) return null;
    this.first = task.next;
    if (this.first === null) this.last = null;
    task.next = null;
    return task;
  }
}
