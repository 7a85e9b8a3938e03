import type { GuardedCall } from './guarded-upstream.js';
import { Outcome, type IsFailure } from './outcome.js';

/** A call that nobody guards: one attempt, a signal that is never aborted. */
export class PassedCall implements GuardedCall {
  readonly attempt = 1;
  private controller: AbortController | null = null;

  constructor(readonly remainingMs: number) {}

  get signal(): AbortSignal {
    return (this.controller ??= new AbortController()).signal;
  }

  /** `isFailure`: so that a fallback answers for the same results as in a guarded call. */
  async outcomeOf(work: (call: GuardedCall) => unknown, isFailure: IsFailure): Promise<Outcome> {
    try {
      const value = await work(this);
      return new Outcome(isFailure(value, false) ? 'failed' : 'succeeded', false, value);
    } catch (error) {
      return new Outcome('failed', true, error);
    }
  }
}
