import { optionalPeer } from '../../core/optional-peer.js';
import type { Attempted, Breaker, BreakerState, Bulkhead, Judgement, Policies } from '../../resilience/policies.js';
import type { ResolvedBreaker } from '../../resilience/limits.options.js';

type Cockatiel = typeof import('cockatiel');
type IBreaker = import('cockatiel').IBreaker;

/** The sampling breaker opens above its threshold, and counts calls as a rate. */
const EPSILON = 1e-6;

/**
 * The policies of cockatiel, 3 and 4 alike.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function cockatielPolicies(): Promise<Policies> {
  const cockatiel = await optionalPeer('cockatiel', '`resilience()`', () => import('cockatiel'));
  const again = cockatiel.handleWhenResult((attempted) => (attempted as Attempted).retryInMs !== null);
  return {
    bulkhead: (places) => bulkhead(cockatiel, places),
    breaker: (options, opened) => new CircuitBreaker(cockatiel, options, opened),
    retry: (maxAttempts, attempt) => {
      const wait: Backoff = { next: ({ result }) => ({ ...wait, duration: result.value.retryInMs }) };
      return cockatiel.retry(again, { maxAttempts, backoff: wait as never }).execute(attempt);
    },
  };
}

/** Cockatiel's backoff, whose duration is the one that the attempt asks for. */
interface Backoff {
  next(context: { readonly result: { readonly value: Attempted } }): Backoff & { readonly duration: number | null };
}

function bulkhead(cockatiel: Cockatiel, places: number): Bulkhead {
  const policy = cockatiel.bulkhead(places, 0);
  return {
    get inFlight() {
      return places - policy.executionSlots;
    },
    enter: (ended) => {
      if (policy.executionSlots === 0) return false;
      void policy.execute(() => ended);
      return true;
    },
  };
}

/** Cockatiel's circuit breaker with several probes, where its version 3 has one. */
class CircuitBreaker implements Breaker {
  private readonly circuit: ReturnType<Cockatiel['circuitBreaker']>;
  private trial: Trial | null = null;
  /** Null while the breaker is closed. */
  private openedAt: number | null = null;
  private opened = 0;

  constructor(
    cockatiel: Cockatiel,
    private readonly options: ResolvedBreaker,
    opened: () => void,
  ) {
    const failed = cockatiel.handleWhenResult((judgement) => judgement === 'failure');
    this.circuit = cockatiel.circuitBreaker(failed, {
      halfOpenAfter: options.openMs,
      breaker: samples(cockatiel, options),
    });
    this.circuit.onBreak(() => {
      this.trial = null;
      this.openedAt = Date.now();
      this.opened += 1;
      opened();
    });
    this.circuit.onReset(() => (this.trial = this.openedAt = null));
  }

  get state(): BreakerState {
    if (this.openedAt === null) return 'closed';
    return this.isTried ? 'half-open' : 'open';
  }

  admit(): ((judgement: Judgement) => Promise<void>) | null {
    const { opened } = this;
    if (this.openedAt !== null) return this.isTried ? (this.trial ??= this.startTrial()).admit() : null;
    return async (judgement) => {
      // An attempt from before the breaker opened is no news when it has closed again.
      if (judgement !== 'unknown' && opened === this.opened) await this.circuit.execute(() => judgement);
    };
  }

  private get isTried(): boolean {
    return this.trial !== null || Date.now() - (this.openedAt ?? 0) >= this.options.openMs;
  }

  /** Cockatiel sees all probes as one call. */
  private startTrial(): Trial {
    const trial = new Trial(this.options.probes);
    trial.ended = this.circuit.execute(() => trial.decided);
    return trial;
  }
}

/** The first probe that fails decides, else the last that succeeds. */
class Trial {
  private decide!: (judgement: Judgement) => void;
  readonly decided = new Promise<Judgement>((resolve) => (this.decide = resolve));
  ended: Promise<unknown> = this.decided;
  private succeeded = 0;
  private free: number;

  constructor(private readonly probes: number) {
    this.free = probes;
  }

  admit(): ((judgement: Judgement) => Promise<void>) | null {
    if (this.free === 0) return null;
    this.free -= 1;
    return async (judgement) => {
      if (judgement === 'unknown') this.free += 1;
      else if (judgement === 'success' && ++this.succeeded < this.probes) return;
      else {
        this.decide(judgement);
        await this.ended;
      }
    };
  }
}

/** Cockatiel's window moves by one slot a call: a window without calls is forgotten here. */
function samples({ SamplingBreaker }: Cockatiel, { ratio, windowMs, atLeast }: ResolvedBreaker): IBreaker {
  const rule = { threshold: ratio - EPSILON, duration: windowMs, minimumRps: ((atLeast - EPSILON) * 1_000) / windowMs };
  let window = new SamplingBreaker(rule);
  let countedAt = 0;
  const current = (): IBreaker => {
    const now = Date.now();
    if (now - countedAt > windowMs) window = new SamplingBreaker(rule);
    countedAt = now;
    return window;
  };
  return { state: null, success: (state) => current().success(state), failure: (state) => current().failure(state) };
}
