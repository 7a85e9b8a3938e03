import type { MonotonicClock } from '../core/clock.js';
import { Histogram } from '../core/histogram.js';
import type { ResilientUpstreamStats } from '../core/snapshot.js';
import type { Deadlines } from './deadlines.js';
import type { ResolvedBreaker } from './limits.options.js';
import type { Breaker, BreakerState, Bulkhead, Policies } from './policies.js';

/** The application's part in a call. */
export interface CallHost {
  readonly nowMs: MonotonicClock;
  readonly deadlines: Deadlines;
  /** Logs each cause once. */
  report(cause: string, message: string): void;
  /** When the request that makes the call has used up its time, monotonic milliseconds; else Infinity. */
  requestDueMs(): number;
  readonly requestDeadlineMs: number | null;
}

/** Counts the calls to one upstream. */
class CallCounters {
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
}

/** The bulkhead, the breaker and the counters for the calls to one upstream. */
export class UpstreamLimits {
  readonly counters = new CallCounters();
  breaker: Breaker | null = null;
  /** Null before the boot, and with `enabled: false`. */
  bulkhead: Bulkhead | null = null;

  constructor(
    readonly name: string,
    readonly options: { readonly breaker: ResolvedBreaker | null; readonly maxInFlight: number | null },
    readonly host: CallHost,
  ) {}

  apply(policies: Policies): void {
    const { breaker, maxInFlight } = this.options;
    this.bulkhead = policies.bulkhead(maxInFlight ?? Number.MAX_SAFE_INTEGER);
    if (breaker === null) return;
    this.breaker = policies.breaker(breaker, () => {
      this.counters.opened += 1;
      const cause = `Upstream "${this.name}" is not called for ${breaker.openMs} ms`;
      this.host.report(cause, `${cause}: too many of its calls have failed.`);
    });
  }

  get state(): BreakerState {
    return this.breaker?.state ?? 'closed';
  }

  stats(): ResilientUpstreamStats {
    const { durations, ...counters } = this.counters;
    const { meanMs: mean, maxMs: max } = durations;
    const durationMs = { mean, p50: durations.quantileMs(0.5), p99: durations.quantileMs(0.99), max };
    return { state: this.state, inFlight: this.bulkhead?.inFlight ?? 0, ...counters, durationMs };
  }
}
