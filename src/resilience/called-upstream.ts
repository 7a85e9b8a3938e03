import { backoffMs } from '../core/backoff.js';
import { toEpochMs } from '../core/clock.js';
import { carefully, isUpstreamFailure, readRetryAfter, type Outcome } from './failure.js';
import { LimitedCall } from './limited-call.js';
import { LimitedUpstream, pass, type CallHost, type Work } from './limited-upstream.js';
import type { ResolvedUpstream } from './resilience.options.js';
import type { ResilientCall, ResolvedCallOptions } from './resilient-upstream.js';
import { RetryBudget } from './retry-budget.js';

const BACKOFF = { baseMs: 100, maxMs: 2_000 };
const ANOTHER_FOLLOWS = new DOMException('Another attempt follows', 'AbortError');

/** The calls that an application makes to one upstream. */
export class CalledUpstream extends LimitedUpstream {
  private readonly budget: RetryBudget;
  /** Each ends a wait before a retry. */
  private readonly waits = new Set<() => void>();
  private isClosed = false;

  constructor(
    name: string,
    private readonly options: ResolvedUpstream,
    host: CallHost,
  ) {
    super(name, options, carefully(options.isFailure ?? isUpstreamFailure, host), host);
    this.budget = new RetryBudget(host.nowMs);
  }

  protected override async run(work: Work, { deadlineMs, idempotent }: ResolvedCallOptions): Promise<Outcome> {
    const withinMs = deadlineMs ?? this.options.deadlineMs;
    if (!this.isLimited) return pass(work, withinMs, this.isFailure);
    let current: Attempt | null = null;
    const call = new LimitedCall(this, withinMs, (error) => current?.abort(error));
    this.budget.called();
    const makeAttempts = async (): Promise<void> => {
      while (call.beginAttempt()) {
        current = new Attempt(call, this.host);
        const outcome = await settle(call, work, current);
        if (outcome === null) return;
        const waitMs = idempotent ? this.retryInMs(call, outcome) : null;
        if (waitMs === null) return call.end(outcome);
        await this.wait(waitMs);
        if (this.isClosed) return call.end(outcome);
        // A client that was given the signal frees the connection whose answer nobody reads.
        current.abort(ANOTHER_FOLLOWS);
      }
    };
    // A result whose getters throw, for example.
    makeAttempts().catch((error: unknown) => call.end({ end: 'failed', thrown: true, value: error }));
    return call.ended;
  }

  /** Calls that wait for a retry end with their last failure: a closed application keeps no timer. */
  override close(): void {
    this.isClosed = true;
    for (const end of this.waits) end();
  }

  private wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.waits.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.waits.add(end);
    });
  }

  /** Null: a retry is not allowed, or not worth it. */
  private retryInMs(call: LimitedCall, { end, value }: Outcome): number | null {
    const { budget, counters, durations, host, options } = this;
    if (end !== 'failed' || call.attempts > options.retries || this.state !== 'closed' || this.isClosed) return null;
    const nowMs = host.nowMs();
    const waitMs = Math.max(backoffMs(call.attempts, BACKOFF), readRetryAfter(value, toEpochMs(nowMs)) ?? 0);
    if (nowMs + waitMs + durations.quantileMs(0.5) >= call.dueMs) return null;
    if (budget.take()) return waitMs;
    counters.retriesDenied += 1;
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

class Attempt implements ResilientCall {
  readonly attempt: number;
  /** Node makes its signal when work reads it. */
  private readonly controller = new AbortController();

  constructor(
    private readonly call: LimitedCall,
    private readonly host: CallHost,
  ) {
    this.attempt = call.attempts;
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get remainingMs(): number {
    return Math.max(0, this.call.dueMs - this.host.nowMs());
  }

  abort(reason: unknown): void {
    this.controller.abort(reason);
  }
}
