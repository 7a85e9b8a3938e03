import { boolean, object, optional, value } from '../core/option.js';
import { timeout } from '../core/shared-options.js';
import type { ResilientUpstreamStats } from '../core/snapshot.js';

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
export const callOption = object({
  idempotent: boolean({ default: false }),
  deadlineMs: optional(timeout()),
  fallback: optional(value<Fallback>('a function of the failure', (given) => typeof given === 'function')),
});
export const DEFAULTS = callOption.read({}, '');
export type ResolvedCallOptions = typeof DEFAULTS;
