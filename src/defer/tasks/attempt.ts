import type { AsyncResource } from 'node:async_hooks';
import type { Linked } from '../../core/linked-list.js';
import { inRootContext } from '../../core/root-context.js';
import { isThenable } from '../../core/thenable.js';
import type { DeferInfo } from '../deferred-work.js';

export type AttemptOutcome = 'completed' | 'failed' | 'timeout';

export type Told = Omit<Required<DeferInfo>, 'signal'>;

export interface Running {
  readonly told: Told;
  readonly info: DeferInfo;
}

/**
 * One attempt of one task: runs it and settles exactly once. A synchronous task costs no promise. What a task does after
 * it was cut is ignored, its late rejection included.
 */
export class Attempt<T> implements Running, Linked<Attempt<T>> {
  previous: Attempt<T> | null = null;
  next: Attempt<T> | null = null;
  readonly startedMs = performance.now();
  private controller: AbortController | null = null;
  private cutBy: Error | null = null;
  private settled = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    readonly subject: T,
    readonly told: Told,
    private readonly onSettled: (attempt: Attempt<T>, outcome: AttemptOutcome, error: unknown) => void,
  ) {}

  /** Plain data: applications spread it and log it. Made for work that takes it: a signal costs microseconds. */
  get info(): DeferInfo {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.cutBy !== null) this.controller.abort(this.cutBy);
    }
    return { ...this.told, signal: this.controller.signal };
  }

  /** Runs it in its async context, for `timeoutMs` at the most: then it gives up on it. */
  start(run: (attempt: Running) => unknown, resource: AsyncResource, timeoutMs: number): void {
    try {
      const result = resource.runInAsyncScope(run, undefined, this);
      if (!isThenable(result)) return this.settle('completed', null);
      const late = (): void => this.cut(new Error(`took longer than ${timeoutMs} ms`));
      this.timer = inRootContext(() => setTimeout(late, timeoutMs).unref());
      Promise.resolve(result).then(
        () => this.settle('completed', null),
        (error: unknown) => this.settle('failed', error),
      );
    } catch (error) {
      this.settle('failed', error);
    }
  }

  /** Asks it to end, and waits for what it does: no longer for the timeout, whose report nobody would hear. */
  abort(error: Error): void {
    clearTimeout(this.timer);
    this.cutBy = error;
    this.controller?.abort(error);
  }

  /** Gives up on it: settles as a timeout, and aborts its signal. */
  cut(error: Error): void {
    this.settle('timeout', error);
    this.abort(error);
  }

  private settle(outcome: AttemptOutcome, error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.timer);
    this.onSettled(this, outcome, error);
  }
}
