import type { AsyncResource } from 'node:async_hooks';
import { Timed } from './deadlines.js';
import type { DeferInfo } from '../deferred-work.js';

export type AttemptOutcome = 'completed' | 'failed' | 'timeout';

/** What is attempted. */
export interface Attempted {
  /** Null: outside a request. May be built when it is read. */
  readonly requestId: string | null;
  /** Final status of the response; null outside a request. */
  readonly status: number | null;
  /** The number of this attempt; 1 is the first. */
  readonly attempt: number;
}

/** Hears once of each attempt how it ended. */
export type OnSettled<T extends Attempted> = (attempt: Attempt<T>, outcome: AttemptOutcome, error: unknown) => void;

/**
 * One attempt of one task: runs it and settles exactly once. A synchronous task costs no promise. What a task does after
 * it was cut is ignored, its late rejection included.
 */
export class Attempt<T extends Attempted = Attempted> extends Timed implements DeferInfo {
  readonly attempt: number;
  readonly status: number | null;
  private controller: AbortController | null = null;
  private settled = false;

  constructor(
    readonly subject: T,
    /** Monotonic milliseconds. */
    readonly startedMs: number,
    private readonly onSettled: OnSettled<T>,
  ) {
    super();
    this.attempt = subject.attempt;
    this.status = subject.status;
  }

  get requestId(): string | null {
    return this.subject.requestId;
  }

  /** Made when first asked for: most tasks never look. */
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.settled) this.controller.abort();
    }
    return this.controller.signal;
  }

  get ranMs(): number {
    return performance.now() - this.startedMs;
  }

  /** Runs it in its async context. True: it goes on asynchronously, and its owner sees to the timeout. */
  start(run: (info: DeferInfo) => unknown, resource: AsyncResource): boolean {
    try {
      const result = resource.runInAsyncScope(run, undefined, this);
      if (isThenable(result)) {
        Promise.resolve(result).then(
          () => this.settle('completed', null),
          (error: unknown) => this.settle('failed', error),
        );
        return true;
      }
    } catch (error) {
      this.settle('failed', error);
      return false;
    }
    this.settle('completed', null);
    return false;
  }

  /** It has taken too long: gives up on it. */
  timeOut(timeoutMs: number): void {
    this.cut(new Error(`took longer than ${timeoutMs} ms`));
  }

  /** Gives up on it: settles as a timeout, and aborts its signal. */
  cut(error: Error): void {
    this.settle('timeout', error);
    this.controller?.abort(error);
  }

  private settle(outcome: AttemptOutcome, error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    this.onSettled(this, outcome, error);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
