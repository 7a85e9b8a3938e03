import type { ResilientUpstreamStats } from '../core/snapshot.js';
import type { ResolvedBreaker } from './limits.options.js';

/** `half-open`: the next calls are probes. */
export type BreakerState = ResilientUpstreamStats['state'];

/** How an attempt ended, for the breaker; `unknown` counts neither way. */
export type Judgement = 'success' | 'failure' | 'unknown';

export interface Breaker {
  readonly state: BreakerState;
  /** Time until it tries again, milliseconds; 0 while it does, and while it is closed. */
  readonly openForMs: number;
  /** Null refuses the attempt. The function takes how the attempt ended. */
  admit(): ((judgement: Judgement) => void) | null;
}

export interface Bulkhead {
  readonly inFlight: number;
  /** Takes a place until the promise has settled; false when all places are taken. */
  enter(ended: Promise<unknown>): boolean;
}

/** The port for the package that keeps bulkheads, breakers and retries. */
export interface Policies {
  bulkhead(places: number): Bulkhead;
  breaker(options: ResolvedBreaker, opened: () => void): Breaker;
  /** Runs an attempt, and again after the wait that it returns, milliseconds; null ends it. */
  retry(retries: number, attempt: () => Promise<number | null>): Promise<unknown>;
}
