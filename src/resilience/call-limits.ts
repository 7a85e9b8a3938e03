import type { MonotonicClock } from '../core/clock.js';
import type { ResilientUpstreamStats } from '../core/snapshot.js';
import { CallCounters } from './call-counters.js';
import type { Deadline, Deadlines } from './deadlines.js';
import { isAbort, type IsFailure } from './failure.js';
import type { Breaker, BreakerState, Bulkhead, Judgement, Policies } from './policies.js';
import { busyError, deadlineError, noTimeLeft, openError, type ResilienceError } from './resilience.error.js';
import type { ResolvedBreaker } from './limits.options.js';

/** A deadline that passes while our loop was late by no more than usual is the upstream's. */
const ORDINARY_LATE_MS = 50;
const ORDINARY_LATE_SHARE = 0.1;

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

/** How a call, or one attempt of it, ended. */
export interface Outcome {
  /** The counter for it. */
  readonly end: 'succeeded' | 'failed' | 'ownDeadlines' | 'refusedOpen' | 'refusedBusy';
  /** True: `value` was thrown, else returned. */
  readonly thrown: boolean;
  readonly value: unknown;
}

/** The bound, the breaker and the deadline for the calls to one upstream. */
export class CallLimits {
  readonly counters = new CallCounters();
  private breaker: Breaker | null = null;
  private bulkhead: Bulkhead | null = null;

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
    return this.counters.stats(this.state, this.bulkhead?.inFlight ?? 0);
  }

  start(deadlineMs: number, isFailure: IsFailure, expired: (error: ResilienceError) => void): LimitedCall {
    return new LimitedCall(this, deadlineMs, isFailure, expired);
  }

  /** Null: let in. */
  refuse(call: LimitedCall): Outcome | null {
    const { maxInFlight } = this.options;
    const unsent = { upstream: this.name, spentMs: 0, attempt: 0 };
    if (call.dueMs <= call.startedMs) {
      return { end: 'ownDeadlines', thrown: true, value: noTimeLeft(unsent, this.host.requestDeadlineMs!) };
    }
    if (this.bulkhead!.enter(call.ended)) return null;
    return { end: 'refusedBusy', thrown: true, value: busyError(unsent, maxInFlight!) };
  }

  admit(): ((judgement: Judgement) => Promise<void>) | null {
    return this.breaker === null ? counted : this.breaker.admit();
  }
}

const counted = (): Promise<void> => Promise.resolve();

/** One call with all its attempts. */
export class LimitedCall {
  readonly startedMs: number;
  readonly dueMs: number;
  readonly ended: Promise<Outcome>;
  /** Attempts that were sent. */
  attempts = 0;
  /** The time is up, or the call has ended. */
  isOver = false;
  private resolve!: (outcome: Outcome) => void;
  private deadline: Deadline | null = null;
  private attemptMs = 0;
  private judge: ((judgement: Judgement) => Promise<void>) | null = null;

  constructor(
    private readonly limits: CallLimits,
    readonly deadlineMs: number,
    private readonly isFailure: IsFailure,
    private readonly expired: (error: ResilienceError) => void,
  ) {
    const { host, counters } = limits;
    const { deadlines } = host;
    this.startedMs = host.nowMs();
    this.dueMs = Math.min(this.startedMs + deadlineMs, host.requestDueMs());
    this.ended = new Promise((resolve) => (this.resolve = resolve));
    counters.calls += 1;
    const refusal = limits.refuse(this);
    if (refusal !== null) {
      this.end(refusal);
      return;
    }
    const timed = { dueMs: this.dueMs, blockedBeforeMs: deadlines.blockedBeforeMs(this.startedMs) };
    this.deadline = deadlines.start(timed, (blockedMs, atMs) => void this.expire(blockedMs, atMs));
  }

  /** True: send it now. False: the call is over, or the breaker refuses the attempt, which ends the call. */
  beginAttempt(): boolean {
    if (this.isOver) return false;
    const { counters, host, options } = this.limits;
    this.judge = this.limits.admit();
    if (this.judge === null) {
      this.end({ end: 'refusedOpen', thrown: true, value: openError(this.known(), options.breaker!.openMs) });
      return false;
    }
    this.attempts += 1;
    this.attemptMs = host.nowMs();
    counters.attempts += 1;
    if (this.attempts > 1) counters.retries += 1;
    return true;
  }

  /** Resolves when the breaker knows. What comes after the deadline counts no more. */
  async endAttempt(thrown: boolean, value: unknown): Promise<Outcome> {
    if (this.isOver) return this.ended;
    const failed = this.isFailure(value, thrown);
    const unknown = !failed && thrown && isAbort(value);
    if (!failed && !unknown) this.limits.counters.durations.record(this.limits.host.nowMs() - this.attemptMs);
    await this.judgeAttempt(failed ? 'failure' : unknown ? 'unknown' : 'success');
    return { end: failed ? 'failed' : 'succeeded', thrown, value };
  }

  end(outcome: Outcome): void {
    if (this.isOver) return;
    this.finish(outcome);
  }

  private finish(outcome: Outcome): void {
    this.isOver = true;
    if (this.deadline !== null) this.limits.host.deadlines.end(this.deadline);
    this.limits.counters[outcome.end] += 1;
    this.resolve(outcome);
  }

  private async expire(blockedMs: number, atMs: number): Promise<void> {
    this.isOver = true;
    const isOurs = this.isOurs(blockedMs, atMs);
    if (!isOurs) this.limits.counters.deadlines += 1;
    const error = deadlineError(this.known(), this.dueMs - this.startedMs, blockedMs);
    this.expired(error);
    await this.judgeAttempt(isOurs ? 'unknown' : 'failure');
    this.finish({ end: isOurs ? 'ownDeadlines' : 'failed', thrown: true, value: error });
  }

  /** Each attempt is judged once. */
  private judgeAttempt(judgement: Judgement): Promise<void> {
    const { judge } = this;
    this.judge = null;
    return judge === null ? counted() : judge(judgement);
  }

  /** The upstream has not had its time: the request had less left, or our loop was blocked. */
  private isOurs(blockedMs: number, atMs: number): boolean {
    const fairMs = this.deadlineMs - Math.min(ORDINARY_LATE_MS, ORDINARY_LATE_SHARE * this.deadlineMs);
    return atMs - this.startedMs - blockedMs < fairMs;
  }

  private known() {
    const spentMs = this.limits.host.nowMs() - this.startedMs;
    return { upstream: this.limits.name, spentMs, attempt: this.attempts };
  }
}
