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

/** The port for the package that keeps the window of a breaker. */
export type MakeBreaker = (options: ResolvedBreaker, opened: () => void) => Breaker;
