import { AsyncResource } from 'node:async_hooks';
import type { DeferInfo, DeferWhen } from '../deferred-work.js';
import { Fifo } from '../fifo.js';
import type { Ended } from '../ledger.js';
import type { Armed } from '../request-tasks.js';

/** What a task is made of. */
export interface TaskSpec {
  readonly name: string;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly run: (info: DeferInfo) => unknown;
}

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
export class DeferTask implements Armed {
  /** `new AsyncResource` costs 0.2 µs; `AsyncResource.bind` and `AsyncLocalStorage.snapshot` 2 to 18 µs. */
  readonly resource = new AsyncResource('PerfDeferredTask');
  /** Final status of the response; null outside a request. */
  status: number | null = null;
  /** Monotonic milliseconds at which the response had ended. */
  acceptedMs = 0;
  attempt = 0;
  older: DeferTask | null = null;
  newer: DeferTask | null = null;

  constructor(
    readonly spec: TaskSpec,
    readonly when: DeferWhen | null,
    readonly origin: Origin | null,
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

  /** Its name and figures for a record. */
  ended(startedMs: number | null, runMs: number): Ended {
    return {
      name: this.spec.name,
      requestId: this.origin?.id ?? null,
      waitMs: (startedMs ?? performance.now()) - this.acceptedMs,
      runMs,
      attempt: Math.max(1, this.attempt),
    };
  }
}

/** The tasks of one request: they run one after the other, in the order they were armed. */
export class TaskSequence {
  readonly waiting = new Fifo<DeferTask>();
  /** The task that failed and waits for its next attempt: it keeps its place. */
  retrying: DeferTask | null = null;
  /** One of its tasks is running, or it stands in the line of sequences that may run. */
  engaged = false;
}
