import { boolean, optional, optionalNumber, optionError, value, type Option } from '../core/option.js';
import type { UpstreamGuardStats } from '../core/snapshot.js';
import { milliseconds } from './gate.options.js';

/** What the work of one call is told. */
export interface GuardedCall {
  /** Aborted when the call's time is up: hand it to the client, or its work goes on unseen. */
  readonly signal: AbortSignal;
  /** 1 for the first. */
  readonly attempt: number;
  /** Until the deadline, milliseconds. */
  readonly remainingMs: number;
}

/** How one call is made. */
export interface GuardedCallOptions<F = never> {
  /**
   * It may be sent again: a read, or a write that is the same when it comes twice.
   * @default false
   */
  idempotent?: boolean;
  /**
   * For this call with all its retries, milliseconds. Not for a Redis client, whose commands have a deadline each.
   * @default the upstream's `deadlineMs`
   */
  deadlineMs?: number;
  /**
   * Answers for a call that fails or is refused; gets what was thrown, or the result that is a failure.
   * @default none: what was thrown is thrown, the result returned
   */
  fallback?: (failure: unknown) => F | Promise<F>;
}

/** One upstream, as `@Upstream(name)` injects it. */
export interface GuardedUpstream {
  /**
   * Calls `work`, and again where it may be tried again.
   * @throws PERF_ERR_DEADLINE (504), PERF_ERR_OPEN and PERF_ERR_BUSY (503), PERF_ERR_OPTION, and what `work` throws
   */
  call<T, F = never>(work: (call: GuardedCall) => T | PromiseLike<T>, options?: GuardedCallOptions<F>): Promise<T | F>;
  readonly state: UpstreamGuardStats['state'];
  stats(): UpstreamGuardStats;
}

const callOptions: ReadonlyMap<string, Option<unknown>> = new Map<string, Option<unknown>>([
  ['idempotent', boolean({ default: false })],
  ['deadlineMs', optionalNumber(milliseconds)],
  ['fallback', optional(value('a function of the failure', (given) => typeof given === 'function'))],
]);

/**
 * A caller's own mistake says nothing of the upstream: it is told before anything is counted. Only what is given is read: to read
 * an object as a whole would cost a fifth of the call.
 * @throws PERF_ERR_OPTION
 */
export function checkCall(work: unknown, options: unknown): void {
  if (typeof work !== 'function') throw optionError('call() work', 'a function that makes the call', work);
  if (typeof options !== 'object' || options === null) throw optionError('call() options', 'an object', options);
  for (const key of Object.keys(options)) {
    const option = callOptions.get(key);
    if (option === undefined) throw optionError('call() options', 'of `idempotent`, `deadlineMs` and `fallback`', key);
    option.read(options[key as keyof typeof options], `call() options.${key}`);
  }
}
