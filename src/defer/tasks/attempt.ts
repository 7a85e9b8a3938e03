import type { AsyncResource } from 'node:async_hooks';
import type { DeferInfo } from '../deferred-work.js';
import type { Origin } from './task.js';

/** What one attempt runs, and for how long. */
export interface AttemptSpec {
  readonly run: (info: DeferInfo) => unknown;
  readonly timeoutMs: number;
  readonly attempt: number;
  readonly origin: Origin | null;
  readonly status: number | null;
  /** The async context to run in. */
  readonly resource: AsyncResource;
}

export type AttemptOutcome = 'completed' | 'failed' | 'timeout';

/**
 * One attempt of one task: runs it, enforces its timeout, and settles exactly once. A synchronous task costs no promise
 * and no timer. What a task does after its timeout is ignored, its late rejection included.
 */
export class Attempt implements DeferInfo {
  readonly startedMs = performance.now();
  readonly attempt: number;
  readonly status: number | null;
  private controller: AbortController | null = null;
  private timer: NodeJS.Timeout | null = null;
  private settled = false;

  constructor(
    private readonly spec: AttemptSpec,
    private readonly onSettled: (outcome: AttemptOutcome, error: unknown) => void,
  ) {
    this.attempt = spec.attempt;
    this.status = spec.status;
  }

  get requestId(): string | null {
    return this.spec.origin?.id ?? null;
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

  start(): void {
    try {
      const result = this.spec.resource.runInAsyncScope(this.spec.run, undefined, this);
      if (!isThenable(result)) {
        this.settle('completed', null);
        return;
      }
      const { timeoutMs } = this.spec;
      this.timer = setTimeout(() => this.cut('timeout', new Error(`took longer than ${timeoutMs} ms`)), timeoutMs);
      this.timer.unref();
      Promise.resolve(result).then(
        () => this.settle('completed', null),
        (error: unknown) => this.settle('failed', error),
      );
    } catch (error) {
      this.settle('failed', error);
    }
  }

  /** Gives up on it: aborts its signal and settles. */
  cut(outcome: 'failed' | 'timeout', error: Error): void {
    this.settle(outcome, error);
    this.controller?.abort(error);
  }

  private settle(outcome: AttemptOutcome, error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.onSettled(outcome, error);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    value !== null &&
    (typeof value === 'object' || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
