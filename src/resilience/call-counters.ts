import { Histogram } from '../core/histogram.js';
import type { ResilientUpstreamStats } from '../core/snapshot.js';
import type { BreakerState } from './policies.js';

/** Counts the calls to one upstream. */
export class CallCounters {
  calls = 0;
  succeeded = 0;
  failed = 0;
  ownDeadlines = 0;
  refusedOpen = 0;
  refusedBusy = 0;
  deadlines = 0;
  attempts = 0;
  retries = 0;
  retriesDenied = 0;
  fallbacks = 0;
  opened = 0;
  readonly durations = new Histogram();

  stats(state: BreakerState, inFlight: number): ResilientUpstreamStats {
    const { durations, ...counters } = this;
    const { meanMs: mean, maxMs: max } = durations;
    const durationMs = { mean, p50: durations.quantileMs(0.5), p99: durations.quantileMs(0.99), max };
    return { state, inFlight, ...counters, durationMs };
  }
}
