import type { UpstreamGuardStats } from '../core/snapshot.js';
import type { BreakerState, MakeBreaker } from './breaker.js';
import type { Gate } from './gate.js';
import { checkCall, type GuardedCall, type GuardedCallOptions, type GuardedUpstream } from './guarded-upstream.js';
import { Outcome, type IsFailure } from './outcome.js';

export type Work = (call: GuardedCall) => unknown;

/** One upstream, whatever it is. Until {@link use} is called, and with the kill switch on, calls pass as they are. */
export abstract class Guard implements GuardedUpstream {
  constructor(readonly gate: Gate) {}

  abstract use(makeBreaker: MakeBreaker): void;
  abstract close(): void;
  protected abstract outcomeOf(work: Work, options: GuardedCallOptions<unknown>): Promise<Outcome>;

  get state(): BreakerState {
    return this.gate.state;
  }

  stats(): UpstreamGuardStats {
    return this.gate.stats();
  }

  async call<T, F = never>(
    work: (call: GuardedCall) => T | PromiseLike<T>,
    options: GuardedCallOptions<F> = {},
  ): Promise<T | F> {
    checkCall(work, options);
    const { fallback } = options;
    const { end, thrown, value } = await this.outcomeOf(work, options);
    if (end === 'succeeded' && !thrown) return value as T;
    if (fallback !== undefined) {
      this.gate.counters.fallbacks += 1;
      return fallback(value);
    }
    if (thrown) throw value;
    return value as T;
  }

  /** Unguarded: one attempt, a signal that is never aborted. `isFailure`: a fallback answers for the same results as in a guarded call. */
  protected async passed(work: Work, remainingMs: number, isFailure: IsFailure): Promise<Outcome> {
    try {
      const value = await work({ attempt: 1, remainingMs, signal: new AbortController().signal });
      return new Outcome(isFailure(value, false) ? 'failed' : 'succeeded', false, value);
    } catch (error) {
      return new Outcome('failed', true, error);
    }
  }
}
