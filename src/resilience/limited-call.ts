import type { Judgement } from './breaker.js';
import type { Deadline } from './deadlines.js';
import { isAbort, type Outcome } from './failure.js';
import type { LimitedUpstream } from './limited-upstream.js';
import { busyError, deadlineError, noTimeLeft, openError, type ResilienceError } from './resilience.error.js';

/** A deadline that passes while our loop was late by no more than usual is the upstream's. */
const ORDINARY_LATE_MS = 50;
const ORDINARY_LATE_SHARE = 0.1;

/** One call with all its attempts: its place among those in flight, its deadline, and what the breaker learns of it. */
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
    private readonly upstream: LimitedUpstream,
    private readonly deadlineMs: number,
    /** Called when the time is up, before the call ends. */
    private readonly expired: (error: ResilienceError) => void,
  ) {
    const { host, counters, limits } = upstream;
    this.startedMs = host.nowMs();
    this.dueMs = Math.min(this.startedMs + deadlineMs, host.requestDueMs());
    this.ended = new Promise((resolve) => (this.resolve = resolve));
    counters.calls += 1;
    if (this.dueMs <= this.startedMs) {
      this.refuse('ownDeadlines', noTimeLeft(this.facts(), host.requestDeadlineMs!));
    } else if (upstream.inFlight === limits.maxInFlight) {
      this.refuse('refusedBusy', busyError(this.facts(), limits.maxInFlight));
    } else {
      upstream.inFlight += 1;
      this.deadline = host.deadlines.start(this.startedMs, this.dueMs, this.expire);
    }
  }

  /** True: send it now. False: the call is over, or the breaker refuses the attempt, which ends the call. */
  beginAttempt(): boolean {
    if (this.isOver) return false;
    const { counters, host, breaker } = this.upstream;
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
    const { durations, host, isFailure } = this.upstream;
    const failed = isFailure(value, thrown);
    const unknown = !failed && thrown && isAbort(value);
    if (!failed && !unknown) durations.record(host.nowMs() - this.attemptMs);
    this.judgeAttempt(failed ? 'failure' : unknown ? 'unknown' : 'success');
    return { end: failed ? 'failed' : 'succeeded', thrown, value };
  }

  end(outcome: Outcome): void {
    if (this.isOver) return;
    this.isOver = true;
    const { counters, host } = this.upstream;
    if (this.deadline !== null) {
      host.deadlines.end(this.deadline);
      this.upstream.inFlight -= 1;
    }
    counters[outcome.end] += 1;
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
    if (!isOurs) this.upstream.counters.deadlines += 1;
    this.judgeAttempt(isOurs ? 'unknown' : 'failure');
    this.refuse(isOurs ? 'ownDeadlines' : 'failed', error);
  };

  /** Each attempt is judged once. */
  private judgeAttempt(judgement: Judgement): void {
    this.judge?.(judgement);
    this.judge = null;
  }

  private facts() {
    const { host, name } = this.upstream;
    const spentMs = host.nowMs() - this.startedMs;
    return { upstream: name, spentMs, attempt: this.attempts };
  }
}
