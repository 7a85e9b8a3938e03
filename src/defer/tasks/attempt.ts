import type { AsyncResource } from 'node:async_hooks';
import { from, fromEvent, isObservable, lastValueFrom, map, of, takeUntil, type Observable } from 'rxjs';
import type { Linked } from '../../core/linked-list.js';
import { inRootContext } from '../../core/root-context.js';
import { isThenable } from '../../core/thenable.js';
import type { DeferInfo } from '../deferred-work.js';

export type AttemptOutcome = 'completed' | 'failed' | 'timeout';

export type AttemptDetails = Omit<Required<DeferInfo>, 'signal'>;

/** One attempt of one task: settles exactly once, whatever the task does later. A synchronous task costs no promise. */
export class Attempt<T> implements Linked<Attempt<T>> {
  previous: Attempt<T> | null = null;
  next: Attempt<T> | null = null;
  readonly startedMs = performance.now();
  private controller: AbortController | null = null;
  private cutBy: Error | null = null;
  private settled = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    readonly subject: T,
    readonly details: AttemptDetails,
    private readonly onSettled: (attempt: Attempt<T>, outcome: AttemptOutcome, error: unknown) => void,
  ) {}

  /** Plain data: applications spread it and log it. Made for work that takes it: a signal costs microseconds. */
  get info(): DeferInfo {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.cutBy !== null) this.controller.abort(this.cutBy);
    }
    return { ...this.details, signal: this.controller.signal };
  }

  /** Runs it in its async context, for `timeoutMs` at the most: then it gives up on it. */
  start(run: (attempt: Attempt<T>) => unknown, resource: AsyncResource, timeoutMs: number): void {
    try {
      const result = resource.runInAsyncScope(run, undefined, this);
      if (!isThenable(result) && !isObservable(result)) return this.settle('completed', null);
      const late = (): void => this.cut(new Error(`took longer than ${timeoutMs} ms`));
      this.timer = inRootContext(() => setTimeout(late, timeoutMs).unref());
      void this.awaitEnd(result, resource).then(
        () => this.settle('completed', null),
        (error: unknown) => this.settle('failed', error),
      );
    } catch (error) {
      this.settle('failed', error);
    }
  }

  private async awaitEnd(result: unknown, resource: AsyncResource): Promise<void> {
    const value = isObservable(result) ? result : await result;
    if (isObservable(value)) await resource.runInAsyncScope(() => this.awaitCompletion(value));
  }

  /** Subscribes until it completes, or the signal aborts. */
  private awaitCompletion(source: Observable<unknown>): Promise<unknown> {
    const { signal } = this.info;
    const aborted: Observable<unknown> = signal.aborted ? of(null) : fromEvent(signal, 'abort');
    const giveUp = (): never => {
      throw signal.reason;
    };
    return lastValueFrom(from(source).pipe(takeUntil(aborted.pipe(map(giveUp)))), { defaultValue: null });
  }

  /** Aborts its signal, and waits for what it does, without a timeout. */
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
