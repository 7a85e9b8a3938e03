import { backoffMs } from '../core/backoff.js';
import { epochMsOf } from '../core/clock.js';
import { CallLimits, type CallHost, type LimitedCall, type Outcome } from './call-limits.js';
import { carefully, isUpstreamFailure, retryAfterMs, type IsFailure } from './failure.js';
import type { Attempted, Policies } from './policies.js';
import type { ResolvedUpstream } from './resilience.options.js';
import { Calls, type ResilientCall, type ResilientCallOptions, type Work } from './resilient-upstream.js';
import { RetryBudget } from './retry-budget.js';

const BACKOFF = { baseMs: 100, maxMs: 2_000 };

/** The calls that an application makes to one upstream. */
export class UpstreamCalls extends Calls {
  readonly budget: RetryBudget;
  private readonly isFailure: IsFailure;
  private policies: Policies | null = null;

  constructor(
    name: string,
    private readonly options: ResolvedUpstream,
    host: CallHost,
  ) {
    super(new CallLimits(name, options, host));
    this.budget = new RetryBudget(host.nowMs);
    this.isFailure = carefully(options.isFailure ?? isUpstreamFailure, host);
  }

  override apply(policies: Policies): void {
    this.limits.apply(policies);
    this.policies = policies;
  }

  override close(): void {}

  protected override async run(work: Work, options: ResilientCallOptions<unknown>): Promise<Outcome> {
    const { deadlineMs = this.options.deadlineMs, idempotent = false } = options;
    const { policies, limits, isFailure } = this;
    if (policies === null) return this.pass(work, deadlineMs, isFailure);
    const attempts = new Attempts(work, this, idempotent ? this.options.retries : 0);
    const call = (attempts.call = limits.start(deadlineMs, isFailure, (error) => attempts.abort(error)));
    this.budget.called();
    const attempted =
      idempotent && !call.isOver ? policies.retry(this.options.retries, () => attempts.next()) : attempts.next();
    attempted.then(
      ({ outcome }) => outcome && call.end(outcome),
      // A result whose getters throw, for example.
      (error: unknown) => call.end({ end: 'failed', thrown: true, value: error }),
    );
    return call.ended;
  }
}

/** The attempts of one call. */
class Attempts {
  call!: LimitedCall;
  private current: Attempt | null = null;

  constructor(
    private readonly work: Work,
    private readonly upstream: UpstreamCalls,
    private readonly retries: number,
  ) {}

  abort(reason: unknown): void {
    this.current?.abort(reason);
  }

  /** A null outcome: the call has ended already. */
  async next(): Promise<Attempted & { readonly outcome: Outcome | null }> {
    const { call } = this;
    // A client that was given the signal lets go of the connection whose answer nobody reads.
    this.current?.abort(new DOMException('Another attempt follows', 'AbortError'));
    if (!call.beginAttempt()) return { outcome: null, retryInMs: null };
    this.current = new Attempt(call, this.upstream.limits.host);
    let outcome: Outcome;
    try {
      outcome = await call.endAttempt(false, await this.work(this.current));
    } catch (error) {
      outcome = await call.endAttempt(true, error);
    }
    return { outcome, retryInMs: call.attempts > this.retries ? null : this.retryInMs(outcome) };
  }

  /** Null: a retry is not allowed, or not worth it. */
  private retryInMs({ end, value }: Outcome): number | null {
    const { call } = this;
    const { limits, budget } = this.upstream;
    if (end !== 'failed' || call.isOver || limits.state !== 'closed') return null;
    const nowMs = limits.host.nowMs();
    const waitMs = Math.max(backoffMs(call.attempts, BACKOFF), retryAfterMs(value, epochMsOf(nowMs)) ?? 0);
    if (nowMs + waitMs + limits.counters.durations.quantileMs(0.5) >= call.dueMs) return null;
    if (budget.take()) return waitMs;
    limits.counters.retriesDenied += 1;
    return null;
  }
}

/** Makes a signal only for work that reads it. */
class Attempt implements ResilientCall {
  readonly attempt: number;
  private controller: AbortController | null = null;
  private abortedBy: unknown = null;

  constructor(
    private readonly call: LimitedCall,
    private readonly host: CallHost,
  ) {
    this.attempt = call.attempts;
  }

  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.abortedBy !== null) this.controller.abort(this.abortedBy);
    }
    return this.controller.signal;
  }

  get remainingMs(): number {
    return Math.max(0, this.call.dueMs - this.host.nowMs());
  }

  abort(reason: unknown): void {
    this.abortedBy = reason;
    this.controller?.abort(reason);
  }
}
