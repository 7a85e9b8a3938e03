import type { AsyncResource } from 'node:async_hooks';
import type { Linked } from '../../core/linked-list.js';
import { inRootContext } from '../../core/root-context.js';
import type { DeferInfo } from '../deferred-work.js';

export type AttemptOutcome = 'completed' | 'failed' | 'timeout';

/** What is attempted. */
export interface Attempted {
  /** The same in every attempt. May be built when it is read. */
  readonly id: string;
  readonly traceparent: string | null;
  /** Null: outside a request. May be built when it is read. */
  readonly requestId: string | null;
  /** Final status of the response; null outside a request. */
  readonly status: number | null;
  /** The number of this attempt; 1 is the first. */
  readonly attempt: number;
}

/** An attempt, as what runs sees it. */
export interface Running {
  readonly subject: Attempted;
  /** What the application is told of it. Made when it is read: not every work takes it. */
  readonly info: DeferInfo;
}

/** Hears once of each attempt how it ended. */
export type OnSettled<T extends Attempted> = (attempt: Attempt<T>, outcome: AttemptOutcome, error: unknown) => void;

/**
 * One attempt of one task: runs it and settles exactly once. A synchronous task costs no promise. What a task does after
 * it was cut is ignored, its late rejection included.
 */
export class Attempt<T extends Attempted = Attempted> implements Linked<Attempt<T>> {
  previous: Attempt<T> | null = null;
  next: Attempt<T> | null = null;
  private controller: AbortController | null = null;
  private settled = false;
  private cutBy: Error | null = null;
  private timer: NodeJS.Timeout | null = null;

  constructor(
    readonly subject: T,
    /** Monotonic milliseconds. */
    readonly startedMs: number,
    private readonly onSettled: OnSettled<T>,
  ) {}

  /** Made when first asked for: most tasks never look. */
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.cutBy !== null) this.controller.abort(this.cutBy);
    }
    return this.controller.signal;
  }

  /**
   * A plain object: applications spread it and log it. Without getters of its own: V8 keeps those in the old generation, and with
   * them the request, until a full collection.
   */
  get info(): DeferInfo {
    const { id, requestId, traceparent, attempt, status } = this.subject;
    return { id, requestId, traceparent, attempt, status, signal: this.signal };
  }

  get ranMs(): number {
    return performance.now() - this.startedMs;
  }

  /** Runs it in its async context, for `timeoutMs` at the most: then it gives up on it. True: it goes on asynchronously. */
  start(run: (attempt: Running) => unknown, resource: AsyncResource, timeoutMs: number): boolean {
    try {
      const result = resource.runInAsyncScope(run, undefined, this);
      if (isThenable(result)) {
        const late = (): void => this.cut(new Error(`took longer than ${timeoutMs} ms`));
        this.timer = inRootContext(() => setTimeout(late, timeoutMs).unref());
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

  /** Asks it to end, and waits for what it does: no longer for the timeout, whose report nobody would hear. */
  abort(error: Error): void {
    if (this.timer !== null) clearTimeout(this.timer);
    // Made here when nobody has looked yet: it may look later.
    void this.signal;
    this.controller?.abort(error);
  }

  /** Gives up on it: settles as a timeout, and aborts its signal. */
  cut(error: Error): void {
    this.cutBy = error;
    this.settle('timeout', error);
    this.controller?.abort(error);
  }

  private settle(outcome: AttemptOutcome, error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.onSettled(this, outcome, error);
  }
}

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
