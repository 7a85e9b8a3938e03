import { boolean, optional, optionError, value, type Option } from '../core/option.js';
import { timeout } from '../core/shared-options.js';
import type { ResilientUpstreamStats } from '../core/snapshot.js';
import type { CallLimits, Outcome } from './call-limits.js';
import type { IsFailure } from './failure.js';
import type { Policies } from './policies.js';

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

const callOptions: ReadonlyMap<string, Option<unknown>> = new Map<string, Option<unknown>>([
  ['idempotent', boolean({ default: false })],
  ['deadlineMs', optional(timeout())],
  ['fallback', optional(value('a function of the failure', (given) => typeof given === 'function'))],
]);

export type Work = (call: ResilientCall) => unknown;

/** An injected upstream. Until {@link apply} is called, and with `enabled: false`, calls pass as they are. */
export abstract class Calls implements ResilientUpstream {
  constructor(readonly limits: CallLimits) {}

  abstract apply(policies: Policies): void;
  abstract close(): void;
  protected abstract run(work: Work, options: ResilientCallOptions<unknown>): Promise<Outcome>;

  get state(): ResilientUpstreamStats['state'] {
    return this.limits.state;
  }

  stats(): ResilientUpstreamStats {
    return this.limits.stats();
  }

  async call<T, F = never>(
    work: (call: ResilientCall) => T | PromiseLike<T>,
    options: ResilientCallOptions<F> = {},
  ): Promise<T | F> {
    checkCall(work, options);
    const { fallback } = options;
    const { end, thrown, value } = await this.run(work, options);
    if (end === 'succeeded' && !thrown) return value as T;
    if (fallback !== undefined) {
      this.limits.counters.fallbacks += 1;
      return fallback(value);
    }
    if (thrown) throw value;
    return value as T;
  }

  /** One attempt without limits, whose signal is never aborted. */
  protected async pass(work: Work, remainingMs: number, isFailure: IsFailure): Promise<Outcome> {
    try {
      const value = await work({ attempt: 1, remainingMs, signal: new AbortController().signal });
      return { end: isFailure(value, false) ? 'failed' : 'succeeded', thrown: false, value };
    } catch (error) {
      return { end: 'failed', thrown: true, value: error };
    }
  }
}

/**
 * Checks a call before it is counted. Only the given keys are read: reading the object as a whole would cost a fifth of the call.
 * @throws PERF_ERR_OPTION
 */
function checkCall(work: unknown, options: unknown): void {
  if (typeof work !== 'function') throw optionError('call() work', 'a function that makes the call', work);
  if (typeof options !== 'object' || options === null) throw optionError('call() options', 'an object', options);
  for (const key of Object.keys(options)) {
    const option = callOptions.get(key);
    if (option === undefined) throw optionError('call() options', 'of `idempotent`, `deadlineMs` and `fallback`', key);
    option.read(options[key as keyof typeof options], `call() options.${key}`);
  }
}
