import { monotonicMs } from '../../core/clock.js';
import { optionalPeer } from '../../core/optional-peer.js';
import type { Breaker, BreakerRules, BreakerState, Judged, MakeBreaker } from '../../guard/breaker.js';

type Cockatiel = typeof import('cockatiel');

/**
 * Breakers of cockatiel; 3 and 4 alike.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function cockatielBreakers(): Promise<MakeBreaker> {
  const cockatiel = await optionalPeer('cockatiel', '`guard()`', () => import('cockatiel'));
  return (rules) => new CircuitBreaker(cockatiel, rules);
}

/** Cockatiel's breaker, with a window of time in which it forgets, and with several probes of which all count. */
class CircuitBreaker implements Breaker {
  private readonly circuit: ReturnType<Cockatiel['circuitBreaker']>;
  private readonly isOpen: () => boolean;
  private trial: Trial | null = null;
  private openedMs = 0;
  private readonly isOver = (): boolean => monotonicMs() - this.openedMs >= this.rules.openMs;

  constructor(
    { circuitBreaker, CircuitState, handleWhenResult }: Cockatiel,
    private readonly rules: BreakerRules,
  ) {
    const failed = handleWhenResult((outcome) => (outcome as Judged).judgedAs === 'failure');
    const { isOver } = this;
    const wait = {
      get duration() {
        return isOver() ? -Infinity : Infinity;
      },
      next: () => wait,
    };
    this.circuit = circuitBreaker(failed, {
      // Cockatiel counts by the system's clock, which may be set back: it is told to wait for ever, and then not at all.
      halfOpenAfter: wait,
      breaker: {
        state: undefined,
        success: () => {},
        failure: (state) => state !== CircuitState.Closed || rules.tripped(),
      },
    });
    this.isOpen = () => this.circuit.state !== CircuitState.Closed;
    this.circuit.onBreak(() => {
      this.trial = null;
      this.openedMs = monotonicMs();
      rules.opened();
    });
    this.circuit.onReset(() => {
      this.trial = null;
      rules.closed();
    });
  }

  get state(): BreakerState {
    if (!this.isOpen()) return 'closed';
    return this.trial !== null || this.isOver() ? 'half-open' : 'open';
  }

  run<T extends Judged>(attempt: () => Promise<T>): Promise<T> | null {
    if (this.trial === null && !this.isOpen()) return this.circuit.execute(attempt);
    this.trial ??= this.tryAgain();
    return this.trial?.probe(attempt) ?? null;
  }

  /** To cockatiel, all probes together are one call. Null: it is too early. */
  private tryAgain(): Trial | null {
    const trial = new Trial(this.rules.probes);
    let begun = false;
    const end = (): void => {
      if (this.trial === trial) this.trial = null;
    };
    this.circuit
      .execute(() => {
        begun = true;
        return trial.decided;
      })
      .then(end, end);
    return begun ? trial : null;
  }
}

/** Some calls that find out whether the upstream is back. The first that fails decides, else the last that succeeds. */
class Trial {
  readonly decided: Promise<Judged>;
  private decide: (outcome: Judged) => void = () => {};
  private succeeded = 0;
  private free: number;

  constructor(private readonly probes: number) {
    this.free = probes;
    this.decided = new Promise((resolve) => {
      this.decide = resolve;
    });
  }

  probe<T extends Judged>(attempt: () => Promise<T>): Promise<T> | null {
    if (this.free === 0) return null;
    this.free -= 1;
    return attempt().then((outcome) => {
      if (outcome.judgedAs === 'unknown') this.free += 1;
      else if (outcome.judgedAs === 'failure') this.decide(outcome);
      else if (++this.succeeded === this.probes) this.decide(outcome);
      return outcome;
    });
  }
}
