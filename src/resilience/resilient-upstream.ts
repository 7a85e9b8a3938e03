import { boolean, object, optional, optionError, value } from '../core/option.js';
import { timeout } from '../core/shared-options.js';
import type { ResilientUpstreamStats } from '../core/snapshot.js';
import type { Outcome } from './limited-call.js';
import type { Policies } from './policies.js';
import type { UpstreamLimits } from './upstream-limits.js';

/** One attempt of a call, as its work gets it. */
export interface ResilientCall {
  /** Aborted when the call's time is up, and before the next attempt: hand it to the client, or its work goes on unseen. */
  readonly signal: AbortSignal;
  /** 1 for the first. */
  readonly attempt: number;
  /** Until the deadline, milliseconds. */
  readonly remainingMs: number;
}

/** How one call is made. */
export interface ResilientCallOptions<F = never> {
  /**
   * The call may be sent again: a read, or a write that is the same when it comes twice.
   * @default false
   */
  idempotent?: boolean;
  /**
   * For this call with all its retries, milliseconds. Not for a Redis client, whose commands have a deadline each.
   * @default the upstream's `deadlineMs`
   */
  deadlineMs?: number;
  /**
   * Answers for a call that fails or is refused; gets the error, or the result that is a failure.
   * @default none: the error is thrown, the result returned
   */
  fallback?: (failure: unknown) => F | Promise<F>;
}

/** One upstream; `@Upstream(name)` injects it. */
export interface ResilientUpstream {
  /**
   * Calls `work`, and again where the call is idempotent and has failed.
   * @throws PERF_ERR_DEADLINE (504), PERF_ERR_OPEN and PERF_ERR_BUSY (503), PERF_ERR_OPTION, and what `work` throws
   */
  call<T, F = never>(
    work: (call: ResilientCall) => T | PromiseLike<T>,
    options?: ResilientCallOptions<F>,
  ): Promise<T | F>;
  readonly state: ResilientUpstreamStats['state'];
  stats(): ResilientUpstreamStats;
}

type Fallback = (failure: unknown) => unknown;
const callOption = object({
  idempotent: boolean({ default: false }),
  deadlineMs: optional(timeout()),
  fallback: optional(value<Fallback>('a function of the failure', (given) => typeof given === 'function')),
});
const DEFAULTS = callOption.read({}, '');
export type ResolvedCallOptions = typeof DEFAULTS;

export type Work = (call: ResilientCall) => unknown;

/** An injected upstream. Until {@link apply} is called, and with `enabled: false`, calls pass as they are. */
export abstract class LimitedUpstream implements ResilientUpstream {
  constructor(readonly limits: UpstreamLimits) {}

  apply(policies: Policies): void {
    this.limits.apply(policies);
  }

  close(): void {}

  get state(): ResilientUpstreamStats['state'] {
    return this.limits.state;
  }

  stats(): ResilientUpstreamStats {
    return this.limits.stats();
  }

  async call<T, F = never>(
    work: (call: ResilientCall) => T | PromiseLike<T>,
    options?: ResilientCallOptions<F>,
  ): Promise<T | F> {
    if (typeof work !== 'function') throw optionError('call() work', 'a function that makes the call', work);
    const resolved = options === undefined ? DEFAULTS : callOption.read(options, 'call() options');
    const { end, thrown, value } = await this.run(work, resolved);
    if (end === 'succeeded' && !thrown) return value as T;
    if (resolved.fallback !== null) {
      this.limits.counters.fallbacks += 1;
      return resolved.fallback(value) as F;
    }
    if (thrown) throw value;
    return value as T;
  }

  protected abstract run(work: Work, options: ResolvedCallOptions): Promise<Outcome>;
}

/** One attempt without limits, whose signal is never aborted. */
export async function pass(work: Work, remainingMs: number, isFailure: (value: unknown) => boolean): Promise<Outcome> {
  try {
    const value = await work({ attempt: 1, remainingMs, signal: new AbortController().signal });
    return { end: isFailure(value) ? 'failed' : 'succeeded', thrown: false, value };
  } catch (error) {
    return { end: 'failed', thrown: true, value: error };
  }
}
