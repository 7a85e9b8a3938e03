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
  private trial: Trial | null = null;
  /** Null: it is closed. */
  private openedMs: number | null = null;

  constructor(
    { circuitBreaker, CircuitState, handleWhenResult }: Cockatiel,
    private readonly rules: BreakerRules,
  ) {
    const failed = handleWhenResult((outcome) => (outcome as Judged).judgedAs === 'failure');
    const isOver = (): boolean => this.isOver;
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
    this.circuit.onBreak(() => {
      this.trial = null;
      this.openedMs = monotonicMs();
      rules.opened();
    });
    this.circuit.onReset(() => {
      this.trial = this.openedMs = null;
      rules.closed();
    });
  }

  get state(): BreakerState {
    if (this.openedMs === null) return 'closed';
    return this.trial !== null || this.isOver ? 'half-open' : 'open';
  }

  run<T extends Judged>(attempt: () => Promise<T>): Promise<T> | null {
    if (this.openedMs === null) return this.circuit.execute(attempt);
    this.trial ??= this.tryAgain();
    return this.trial?.probe(attempt) ?? null;
  }

  private get isOver(): boolean {
    return monotonicMs() - (this.openedMs ?? 0) >= this.rules.openMs;
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
  private decide!: (outcome: Judged) => void;
  readonly decided = new Promise<Judged>((resolve) => (this.decide = resolve));
  private succeeded = 0;
  private free: number;

  constructor(private readonly probes: number) {
    this.free = probes;
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
