import type { MonotonicClock } from '../core/clock.js';
import { Histogram } from '../core/histogram.js';
import { optionError } from '../core/option.js';
import type { ResilientUpstreamStats } from '../core/snapshot.js';
import type { Breaker, MakeBreaker } from './breaker.js';
import type { Deadlines } from './deadlines.js';
import type { IsFailure, Outcome } from './failure.js';
import type { ResolvedBreaker } from './limits.options.js';
import {
  callOption,
  DEFAULTS,
  type ResilientCall,
  type ResilientCallOptions,
  type ResilientUpstream,
  type ResolvedCallOptions,
} from './resilient-upstream.js';

/** The application's part in a call. */
export interface CallHost {
  readonly nowMs: MonotonicClock;
  readonly deadlines: Deadlines;
  /** Logs each cause once. */
  report(cause: string, message: string): void;
  /** The calling request has time until then, monotonic milliseconds; Infinity without a deadline. */
  requestDueMs(): number;
  readonly requestDeadlineMs: number | null;
}

/** The limits that every kind of upstream has. */
interface Limits {
  readonly deadlineMs: number;
  readonly breaker: ResolvedBreaker | null;
  readonly maxInFlight: number;
}

/** The counts of the calls to one upstream. */
const newCounters = () => ({
  calls: 0,
  succeeded: 0,
  failed: 0,
  ownDeadlines: 0,
  refusedOpen: 0,
  refusedBusy: 0,
  deadlines: 0,
  attempts: 0,
  retries: 0,
  retriesDenied: 0,
  fallbacks: 0,
  opened: 0,
});

export type Work = (call: ResilientCall) => unknown;

/** An injected upstream. Until {@link limit} is called, and with `enabled: false`, calls pass as they are. */
export abstract class LimitedUpstream implements ResilientUpstream {
  readonly counters = newCounters();
  readonly durations = new Histogram();
  inFlight = 0;
  breaker: Breaker | null = null;
  protected isLimited = false;

  constructor(
    readonly name: string,
    readonly limits: Limits,
    readonly isFailure: IsFailure,
    readonly host: CallHost,
  ) {}

  limit(makeBreaker: MakeBreaker): void {
    this.isLimited = true;
    const { breaker } = this.limits;
    if (breaker === null) return;
    this.breaker = makeBreaker(breaker, () => {
      this.counters.opened += 1;
      const cause = `Upstream "${this.name}" is not called for ${breaker.openMs} ms`;
      this.host.report(cause, `${cause}: too many of its calls have failed.`);
    });
  }

  close(): void {}

  get state(): ResilientUpstreamStats['state'] {
    return this.breaker?.state ?? 'closed';
  }

  stats(): ResilientUpstreamStats {
    const { durations, inFlight, state } = this;
    const { meanMs: mean, maxMs: max } = durations;
    const durationMs = { mean, p50: durations.quantileMs(0.5), p99: durations.quantileMs(0.99), max };
    return { state, inFlight, ...this.counters, durationMs };
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
      this.counters.fallbacks += 1;
      return resolved.fallback(value) as F;
    }
    if (thrown) throw value;
    return value as T;
  }

  protected abstract run(work: Work, options: ResolvedCallOptions): Promise<Outcome>;
}

/** One attempt without limits, whose signal is never aborted. */
export async function pass(work: Work, remainingMs: number, isFailure: IsFailure): Promise<Outcome> {
  try {
    const value = await work({ attempt: 1, remainingMs, signal: new AbortController().signal });
    return { end: isFailure(value, false) ? 'failed' : 'succeeded', thrown: false, value };
  } catch (error) {
    return { end: 'failed', thrown: true, value: error };
  }
}
