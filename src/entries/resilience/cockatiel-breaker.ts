import { monotonicMs } from '../../core/clock.js';
import { optionalPeer } from '../../core/optional-peer.js';
import type { Breaker, BreakerState, Judgement, MakeBreaker } from '../../resilience/breaker.js';
import type { ResolvedBreaker } from '../../resilience/limits.options.js';

type Cockatiel = typeof import('cockatiel');

/** The sampling breaker opens above its threshold, and counts calls as a rate. */
const EPSILON = 1e-6;

/**
 * Breakers of cockatiel, 3 and 4 alike.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function cockatielBreaker(): Promise<MakeBreaker> {
  const cockatiel = await optionalPeer('cockatiel', '`resilience()`', () => import('cockatiel'));
  return (options, opened) => new SampledBreaker(cockatiel, options, opened);
}

/** Cockatiel's sampled window, with as many probes as wanted: its circuit breaker tries with one call, for which all others wait. */
class SampledBreaker implements Breaker {
  private window: InstanceType<Cockatiel['SamplingBreaker']>;
  private countedAt = 0;
  /** Null while the breaker is closed. */
  private openedAt: number | null = null;
  private freeProbes = 0;
  private succeeded = 0;
  /** Counts changes between open and closed: an attempt that began before the last one is no news. */
  private period = 0;

  constructor(
    private readonly cockatiel: Cockatiel,
    private readonly options: ResolvedBreaker,
    private readonly opened: () => void,
  ) {
    this.window = this.newWindow();
  }

  get state(): BreakerState {
    if (this.openedAt === null) return 'closed';
    return this.openForMs === 0 ? 'half-open' : 'open';
  }

  get openForMs(): number {
    return this.openedAt === null ? 0 : Math.max(0, Math.ceil(this.openedAt + this.options.openMs - monotonicMs()));
  }

  admit(): ((judgement: Judgement) => void) | null {
    const { period, state } = this;
    if (state === 'open' || (state === 'half-open' && this.freeProbes === 0)) return null;
    if (state === 'half-open') this.freeProbes -= 1;
    return (judgement) => {
      if (period !== this.period) return;
      if (state === 'closed') this.count(judgement);
      else this.endProbe(judgement);
    };
  }

  private count(judgement: Judgement): void {
    if (judgement === 'unknown') return;
    const now = monotonicMs();
    // Cockatiel's window moves by one slot a call: a window without calls is forgotten here.
    if (now - this.countedAt > this.options.windowMs) this.window = this.newWindow();
    this.countedAt = now;
    const { Closed } = this.cockatiel.CircuitState;
    if (judgement === 'success') this.window.success(Closed);
    else if (this.window.failure(Closed)) this.open();
  }

  /** The first probe that fails opens the breaker again; the last one that succeeds closes it. */
  private endProbe(judgement: Judgement): void {
    if (judgement === 'failure') this.open();
    else if (judgement === 'unknown') this.freeProbes += 1;
    else if (++this.succeeded === this.options.probes) {
      this.openedAt = null;
      this.period += 1;
      this.window = this.newWindow();
    }
  }

  private open(): void {
    this.openedAt = monotonicMs();
    this.period += 1;
    this.freeProbes = this.options.probes;
    this.succeeded = 0;
    this.opened();
  }

  private newWindow(): InstanceType<Cockatiel['SamplingBreaker']> {
    const { ratio, windowMs: duration, atLeast } = this.options;
    const minimumRps = ((atLeast - EPSILON) * 1_000) / duration;
    return new this.cockatiel.SamplingBreaker({ threshold: ratio - EPSILON, duration, minimumRps });
  }
}
