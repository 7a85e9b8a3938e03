import type { Deadline } from './deadlines.js';
import { isAbort, type IsFailure } from './failure.js';
import type { Judgement } from './policies.js';
import { busyError, deadlineError, noTimeLeft, openError, type ResilienceError } from './resilience.error.js';
import type { UpstreamLimits } from './upstream-limits.js';

/** A deadline that passes while our loop was late by no more than usual is the upstream's. */
const ORDINARY_LATE_MS = 50;
const ORDINARY_LATE_SHARE = 0.1;

/** How a call, or one attempt of it, ended. */
export interface Outcome {
  /** The counter for it. */
  readonly end: 'succeeded' | 'failed' | 'ownDeadlines' | 'refusedOpen' | 'refusedBusy';
  /** True: `value` was thrown, else returned. */
  readonly thrown: boolean;
  readonly value: unknown;
}

/** One call with all its attempts: its place in the bulkhead, its deadline, and what the breaker learns of it. */
export class LimitedCall {
  readonly dueMs: number;
  readonly ended: Promise<Outcome>;
  /** Attempts that were sent. */
  attempts = 0;
  isOver = false;
  private readonly startedMs: number;
  private resolve!: (outcome: Outcome) => void;
  private deadline: Deadline | null = null;
  private attemptMs = 0;
  private judge: ((judgement: Judgement) => void) | null = null;

  constructor(
    private readonly limits: UpstreamLimits,
    private readonly deadlineMs: number,
    private readonly isFailure: IsFailure,
    /** Called when the time is up, before the call ends. */
    private readonly expired: (error: ResilienceError) => void,
  ) {
    const { host, counters, bulkhead, options } = limits;
    this.startedMs = host.nowMs();
    this.dueMs = Math.min(this.startedMs + deadlineMs, host.requestDueMs());
    this.ended = new Promise((resolve) => (this.resolve = resolve));
    counters.calls += 1;
    if (this.dueMs <= this.startedMs) {
      this.refuse('ownDeadlines', noTimeLeft(this.facts(), host.requestDeadlineMs!));
    } else if (bulkhead!.enter(this.ended)) {
      this.deadline = host.deadlines.start(this.startedMs, this.dueMs, this.expire);
    } else {
      this.refuse('refusedBusy', busyError(this.facts(), options.maxInFlight!));
    }
  }

  /** True: send it now. False: the call is over, or the breaker refuses the attempt, which ends the call. */
  beginAttempt(): boolean {
    if (this.isOver) return false;
    const { counters, host, breaker } = this.limits;
    if (breaker !== null && (this.judge = breaker.admit()) === null) {
      this.refuse('refusedOpen', openError(this.facts(), breaker.openForMs));
      return false;
    }
    this.attempts += 1;
    this.attemptMs = host.nowMs();
    counters.attempts += 1;
    if (this.attempts > 1) counters.retries += 1;
    return true;
  }

  /** Null after the deadline: the attempt counts no more. */
  endAttempt(thrown: boolean, value: unknown): Outcome | null {
    if (this.isOver) return null;
    const { counters, host } = this.limits;
    const failed = this.isFailure(value, thrown);
    const unknown = !failed && thrown && isAbort(value);
    if (!failed && !unknown) counters.durations.record(host.nowMs() - this.attemptMs);
    this.judgeAttempt(failed ? 'failure' : unknown ? 'unknown' : 'success');
    return { end: failed ? 'failed' : 'succeeded', thrown, value };
  }

  end(outcome: Outcome): void {
    if (this.isOver) return;
    this.isOver = true;
    if (this.deadline !== null) this.limits.host.deadlines.end(this.deadline);
    this.limits.counters[outcome.end] += 1;
    this.resolve(outcome);
  }

  private refuse(end: Outcome['end'], error: ResilienceError): void {
    this.end({ end, thrown: true, value: error });
  }

  private readonly expire = (blockedMs: number, atMs: number): void => {
    const error = deadlineError(this.facts(), this.dueMs - this.startedMs, blockedMs);
    this.expired(error);
    // The upstream has not had its time where the request had less left, or our loop was blocked.
    const fairMs = this.deadlineMs - Math.min(ORDINARY_LATE_MS, ORDINARY_LATE_SHARE * this.deadlineMs);
    const isOurs = atMs - this.startedMs - blockedMs < fairMs;
    if (!isOurs) this.limits.counters.deadlines += 1;
    this.judgeAttempt(isOurs ? 'unknown' : 'failure');
    this.refuse(isOurs ? 'ownDeadlines' : 'failed', error);
  };

  /** Each attempt is judged once. */
  private judgeAttempt(judgement: Judgement): void {
    this.judge?.(judgement);
    this.judge = null;
  }

  private facts() {
    const spentMs = this.limits.host.nowMs() - this.startedMs;
    return { upstream: this.limits.name, spentMs, attempt: this.attempts };
  }
}
