import { backoffMs } from '../core/backoff.js';
import { toEpochMs } from '../core/clock.js';
import { carefully, isUpstreamFailure, readRetryAfter, type IsFailure } from './failure.js';
import { LimitedCall, type Outcome } from './limited-call.js';
import type { Policies } from './policies.js';
import type { ResolvedUpstream } from './resilience.options.js';
import {
  LimitedUpstream,
  pass,
  type ResilientCall,
  type ResolvedCallOptions,
  type Work,
} from './resilient-upstream.js';
import { RetryBudget } from './retry-budget.js';
import { UpstreamLimits, type CallHost } from './upstream-limits.js';

const BACKOFF = { baseMs: 100, maxMs: 2_000 };
const ANOTHER_FOLLOWS = new DOMException('Another attempt follows', 'AbortError');

/** The calls that an application makes to one upstream. */
export class CalledUpstream extends LimitedUpstream {
  private readonly budget: RetryBudget;
  private readonly isFailure: IsFailure;
  private policies: Policies | null = null;

  constructor(
    name: string,
    private readonly options: ResolvedUpstream,
    private readonly host: CallHost,
  ) {
    super(new UpstreamLimits(name, options, host));
    this.budget = new RetryBudget(host.nowMs);
    this.isFailure = carefully(options.isFailure ?? isUpstreamFailure, host);
  }

  override apply(policies: Policies): void {
    super.apply(policies);
    this.policies = policies;
  }

  protected override async run(work: Work, { deadlineMs, idempotent }: ResolvedCallOptions): Promise<Outcome> {
    const { policies, limits, isFailure, host, options } = this;
    const withinMs = deadlineMs ?? options.deadlineMs;
    if (policies === null) return pass(work, withinMs, (value) => isFailure(value, false));
    let current: Attempt | null = null;
    const call = new LimitedCall(limits, withinMs, isFailure, (error) => current?.abort(error));
    const attempt = async (): Promise<number | null> => {
      // A client that was given the signal frees the connection whose answer nobody reads.
      current?.abort(ANOTHER_FOLLOWS);
      if (!call.beginAttempt()) return null;
      current = new Attempt(call, host);
      const outcome = await settle(call, work, current);
      const waitMs = outcome === null || !idempotent ? null : this.retryInMs(call, outcome);
      if (outcome !== null && waitMs === null) call.end(outcome);
      return waitMs;
    };
    this.budget.called();
    const ended = idempotent && !call.isOver ? policies.retry(options.retries, attempt) : attempt();
    // A result whose getters throw, for example.
    ended.catch((error: unknown) => call.end({ end: 'failed', thrown: true, value: error }));
    return call.ended;
  }

  /** Null: a retry is not allowed, or not worth it. */
  private retryInMs(call: LimitedCall, { end, value }: Outcome): number | null {
    const { limits, budget, host, options } = this;
    if (end !== 'failed' || call.attempts > options.retries || limits.state !== 'closed') return null;
    const nowMs = host.nowMs();
    const waitMs = Math.max(backoffMs(call.attempts, BACKOFF), readRetryAfter(value, toEpochMs(nowMs)) ?? 0);
    if (nowMs + waitMs + limits.counters.durations.quantileMs(0.5) >= call.dueMs) return null;
    if (budget.take()) return waitMs;
    limits.counters.retriesDenied += 1;
    return null;
  }
}

async function settle(call: LimitedCall, work: Work, attempt: Attempt): Promise<Outcome | null> {
  try {
    return call.endAttempt(false, await work(attempt));
  } catch (error) {
    return call.endAttempt(true, error);
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
