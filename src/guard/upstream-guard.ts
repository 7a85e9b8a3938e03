import { epochMsOf, MAX_TIMER_MS } from '../core/clock.js';
import { optionError } from '../core/option.js';
import type { UpstreamGuardStats } from '../core/snapshot.js';
import { Gate, type GateHost, type Settle } from './gate.js';
import type { GuardError } from './guard.error.js';
import type { ResolvedUpstream } from './guard.options.js';
import type { GuardedCall, GuardedCallOptions, GuardedUpstream } from './guarded-upstream.js';
import { carefully, isUpstreamFailure, type IsFailure, type Outcome } from './outcome.js';
import { PassedCall } from './passed-call.js';
import type { BreakerState, Policies, Retry } from './policies.js';
import { RetryBudget } from './retry-budget.js';
import { retryAfterMs } from './retry-after.js';

/** Full jitter: a random wait between nothing and twice the last bound. https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/ */
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;

type Work = (call: GuardedCall) => unknown;

/** One call with all its attempts: what its work is told, and its time. */
class RunningCall implements GuardedCall {
  attempt = 0;
  private controller: AbortController | null = null;
  private expiredBy: GuardError | null = null;

  constructor(
    readonly startedMs: number,
    readonly dueMs: number,
    readonly deadlineMs: number,
    readonly blockedBeforeMs: number,
    private readonly work: Work,
    private readonly host: GateHost,
    readonly isFailure: IsFailure,
    private readonly budget: RetryBudget,
  ) {}

  /** A signal is made only for work that asks for it. */
  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.expiredBy !== null) this.controller.abort(this.expiredBy);
    }
    return this.controller.signal;
  }

  get remainingMs(): number {
    return Math.max(0, this.dueMs - this.host.nowMs());
  }

  get call(): this {
    return this;
  }

  readonly run = (settle: Settle): void => {
    if (this.attempt === 1) this.budget.called();
    try {
      const working = this.work(this);
      if (typeof (working as PromiseLike<unknown> | null | undefined)?.then !== 'function') settle(false, working);
      else {
        (working as PromiseLike<unknown>).then(
          (value) => settle(false, value),
          (error: unknown) => settle(true, error),
        );
      }
    } catch (error) {
      settle(true, error);
    }
  };

  readonly expired = (error: GuardError): void => {
    this.expiredBy = error;
    this.controller?.abort(error);
  };
}

/** One upstream. Until {@link use} is called, and with the kill switch on, calls pass as they are. */
export class UpstreamGuard implements GuardedUpstream {
  readonly gate: Gate;
  private readonly budget: RetryBudget;
  private readonly isFailure: IsFailure;
  private retry: Retry | null = null;
  private guards = false;

  constructor(
    readonly name: string,
    private readonly options: ResolvedUpstream,
    private readonly host: GateHost,
  ) {
    this.gate = new Gate(name, options, host);
    this.budget = new RetryBudget(host.nowMs);
    this.isFailure = carefully(options.isFailure ?? isUpstreamFailure, host);
  }

  use(policies: Policies): void {
    this.gate.use(policies);
    if (this.options.retries > 0) this.retry = policies.retry(this.options.retries);
    this.guards = true;
  }

  get state(): BreakerState {
    return this.gate.state;
  }

  stats(): UpstreamGuardStats {
    return this.gate.stats();
  }

  async call<T, F = never>(
    work: (call: GuardedCall) => T | PromiseLike<T>,
    options: GuardedCallOptions<F> = {},
  ): Promise<T | F> {
    const { fallback } = options;
    const deadlineMs = options.deadlineMs === undefined ? this.options.deadlineMs : checked(options.deadlineMs);
    const outcome = this.guards
      ? await this.guarded(work, deadlineMs, options.idempotent === true)
      : await new PassedCall(deadlineMs).outcomeOf(work, this.isFailure);
    if (outcome.end === 'succeeded' && !outcome.thrown) return outcome.value as T;
    if (fallback !== undefined) {
      this.gate.counters.fallbacks += 1;
      return fallback(outcome.value);
    }
    if (outcome.thrown) throw outcome.value;
    return outcome.value as T;
  }

  private guarded(work: Work, deadlineMs: number, idempotent: boolean): Promise<Outcome> {
    const { gate, host, retry } = this;
    const startedMs = host.nowMs();
    const dueMs = Math.min(startedMs + deadlineMs, host.requestDueMs());
    const unanswered = { upstream: this.name, spentMs: 0, attempt: 0 };
    if (dueMs <= startedMs) return gate.tooLate(unanswered);
    const before = host.deadlines.blockedBeforeMs(startedMs);
    const call = new RunningCall(startedMs, dueMs, deadlineMs, before, work, host, this.isFailure, this.budget);
    if (!idempotent || retry === null) {
      call.attempt = 1;
      return gate.enter(unanswered, () => gate.attempt(call));
    }
    let last: Outcome | null = null;
    const unwatch = host.deadlines.watchBlocks();
    const ended = gate.enter(unanswered, () =>
      retry.run(async (retries) => {
        if (last !== null) {
          last.retryInMs = null;
          // Our own loop was blocked while it waited.
          if (call.remainingMs === 0) return last;
        }
        call.attempt = retries + 1;
        last = await gate.attempt(call);
        if (last.end === 'failed' && retries < this.options.retries)
          last.retryInMs = this.retryInMs(call, last, retries);
        return last;
      }),
    );
    return ended.finally(unwatch);
  }

  /** Null: it is not worth it, or not allowed. */
  private retryInMs(call: RunningCall, { value }: Outcome, retries: number): number | null {
    const { gate, host } = this;
    const nowMs = host.nowMs();
    const bound = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** retries);
    const waitMs = Math.max(Math.random() * bound, retryAfterMs(value, epochMsOf(nowMs)) ?? 0);
    // What usually takes longer than what is left would only add load.
    if (nowMs + waitMs + gate.counters.durations.quantileMs(0.5) >= call.dueMs) return null;
    if (gate.state !== 'closed') return null;
    if (this.budget.take()) return waitMs;
    gate.counters.retriesDenied += 1;
    return null;
  }
}

function checked(deadlineMs: number): number {
  if (deadlineMs > 0 && deadlineMs <= MAX_TIMER_MS) return deadlineMs;
  throw optionError('deadlineMs', `a number of milliseconds above 0 and at most ${MAX_TIMER_MS}`, deadlineMs);
}
