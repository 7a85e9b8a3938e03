import { backoffMs } from '../core/backoff.js';
import { epochMsOf, type MonotonicClock } from '../core/clock.js';
import { isThenable } from '../core/thenable.js';
import type { MakeBreaker } from './breaker.js';
import { Gate, type Attempt, type CallTime, type GateHost, type Settle } from './gate.js';
import type { GuardError } from './guard.error.js';
import type { ResolvedUpstream } from './guard.options.js';
import { Guard, type Work } from './guard.js';
import type { GuardedCall, GuardedCallOptions } from './guarded-upstream.js';
import { carefully, isUpstreamFailure, type IsFailure, type Outcome } from './outcome.js';
import { releaseAnswer } from './release-answer.js';
import { RetryBudget } from './recent-calls.js';
import { retryAfterMs } from './retry-after.js';

const RETRY = { baseMs: 100, maxMs: 2_000 };

/** One call with all its attempts: what its work is told, and its time. */
class RunningCall implements GuardedCall, Attempt {
  attempt = 0;
  private controller: AbortController | null = null;
  private expiredBy: GuardError | null = null;

  constructor(
    readonly time: CallTime,
    private readonly work: Work,
    readonly isFailure: IsFailure,
    private readonly budget: RetryBudget,
    private readonly nowMs: MonotonicClock,
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
    return Math.max(0, this.time.dueMs - this.nowMs());
  }

  run(settle: Settle): void {
    if (this.attempt === 1) this.budget.called();
    try {
      const working = this.work(this);
      if (!isThenable(working)) return settle(false, working);
      working.then(
        (value) => settle(false, value),
        (error: unknown) => settle(true, error),
      );
    } catch (error) {
      settle(true, error);
    }
  }

  expired(error: GuardError): void {
    this.expiredBy = error;
    this.controller?.abort(error);
  }
}

/** One upstream that the application calls itself. */
export class UpstreamGuard extends Guard {
  private readonly budget: RetryBudget;
  private readonly isFailure: IsFailure;
  private guards = false;

  constructor(
    name: string,
    private readonly options: ResolvedUpstream,
    private readonly host: GateHost,
  ) {
    super(new Gate(name, options, host));
    this.budget = new RetryBudget(host.nowMs);
    this.isFailure = carefully(options.isFailure ?? isUpstreamFailure, host);
  }

  override use(makeBreaker: MakeBreaker): void {
    this.gate.use(makeBreaker);
    this.guards = true;
  }

  override close(): void {}

  protected override outcomeOf(work: Work, options: GuardedCallOptions<unknown>): Promise<Outcome> {
    const { deadlineMs = this.options.deadlineMs, idempotent = false } = options;
    return this.guards
      ? this.gate.enter(deadlineMs, (time) => this.attempts(time, work, idempotent))
      : this.passed(work, deadlineMs, this.isFailure);
  }

  private async attempts(time: CallTime, work: Work, idempotent: boolean): Promise<Outcome> {
    const { gate, host } = this;
    const call = new RunningCall(time, work, this.isFailure, this.budget, host.nowMs);
    const attempts = idempotent ? this.options.retries + 1 : 1;
    for (;;) {
      call.attempt += 1;
      const outcome = await gate.attempt(call);
      const waitMs = outcome.end === 'failed' && call.attempt < attempts ? this.retryInMs(call, outcome) : null;
      if (waitMs === null) return outcome;
      await host.deadlines.wait(waitMs);
      // Our own loop was blocked while it waited.
      if (call.remainingMs === 0) return outcome;
      releaseAnswer(outcome.value);
    }
  }

  /** Null: it is not worth it, or not allowed. */
  private retryInMs({ time, attempt }: RunningCall, { value }: Outcome): number | null {
    const { gate, host } = this;
    const nowMs = host.nowMs();
    const waitMs = Math.max(backoffMs(attempt, RETRY), retryAfterMs(value, epochMsOf(nowMs)) ?? 0);
    // What usually takes longer than what is left would only add load.
    if (nowMs + waitMs + gate.counters.durations.quantileMs(0.5) >= time.dueMs) return null;
    if (gate.state !== 'closed') return null;
    if (this.budget.take()) return waitMs;
    gate.counters.retriesDenied += 1;
    return null;
  }
}
