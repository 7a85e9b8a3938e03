import type { UpstreamGuardStats } from '../core/snapshot.js';

/** `half-open`: the next calls try whether the upstream is back. */
export type BreakerState = UpstreamGuardStats['state'];

/** How an attempt ended, for the breaker. `unknown` says nothing of the upstream. */
export interface Judged {
  readonly judgedAs: 'success' | 'failure' | 'unknown';
}

/** What a breaker asks, and tells. */
export interface BreakerRules {
  readonly openMs: number;
  /** Calls that must succeed until it closes. */
  readonly probes: number;
  /** After a failure: are there too many? */
  tripped(): boolean;
  opened(): void;
  closed(): void;
}

export interface Breaker {
  readonly state: BreakerState;
  /** Null: it is open, and `attempt` was not called. */
  run<T extends Judged>(attempt: () => Promise<T>): Promise<T> | null;
}

/** The port for the package that keeps breakers. */
export type MakeBreaker = (rules: BreakerRules) => Breaker;
