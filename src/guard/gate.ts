import type { MonotonicClock } from '../core/clock.js';
import type { UpstreamGuardStats } from '../core/snapshot.js';
import type { Deadlines } from './deadlines.js';
import { FailureWindow } from './failure-window.js';
import { GateCounters } from './gate-counters.js';
import type { ResolvedBreaker } from './gate.options.js';
import {
  busyError,
  deadlineError,
  noTimeLeft,
  openError,
  type GuardError,
  type UnansweredCall,
} from './guard.error.js';
import { isAbort, Outcome, type IsFailure } from './outcome.js';
import type { Breaker, BreakerState, Bulkhead, Policies } from './policies.js';
import { Silence } from './silence.js';

/** What an upstream may lack of its deadline and is to blame all the same: our loop was a little late, as it always is. */
const ORDINARY_LATE_MS = 50;
const ORDINARY_LATE_SHARE = 0.1;

/** What gates need of their application. */
export interface GateHost {
  readonly nowMs: MonotonicClock;
  readonly deadlines: Deadlines;
  /** Says each cause once. */
  report(cause: string, message: string): void;
  /** Every error passes here before anybody sees it. */
  made(error: GuardError): GuardError;
  /** When the request whose code calls has used up its time, monotonic milliseconds; Infinity where that is not set. */
  requestDueMs(): number;
  readonly requestDeadlineMs: number | null;
}

/** One call, from its beginning to its end with all its attempts. */
export interface TimedCall {
  readonly startedMs: number;
  readonly dueMs: number;
  /** What the upstream is given, milliseconds. A request that has less left makes `dueMs` come earlier. */
  readonly deadlineMs: number;
  readonly attempt: number;
  /** Of all blocks of our loop so far, when it started. */
  readonly blockedBeforeMs: number;
}

/** Ends an attempt. */
export type Settle = (thrown: boolean, value: unknown) => void;

/** One attempt. */
export interface Attempt {
  readonly call: TimedCall;
  /** Sends it. */
  readonly run: (settle: Settle) => void;
  readonly isFailure: IsFailure;
  /** Its time is up. */
  readonly expired?: (error: GuardError) => void;
}

/** Who is let through to one upstream, and what becomes of them. */
export class Gate {
  readonly counters = new GateCounters();
  private readonly window: FailureWindow | null;
  private readonly silence = new Silence();
  private breaker: Breaker | null = null;
  private bulkhead: Bulkhead | null = null;

  constructor(
    readonly name: string,
    private readonly rules: { readonly breaker: ResolvedBreaker | null; readonly maxInFlight: number | null },
    private readonly host: GateHost,
  ) {
    this.window = rules.breaker === null ? null : new FailureWindow(rules.breaker, host.nowMs);
  }

  /** Before the application listens. */
  use(policies: Policies): void {
    const { rules, window, counters } = this;
    if (rules.maxInFlight !== null) this.bulkhead = policies.bulkhead(rules.maxInFlight);
    if (rules.breaker === null || window === null) return;
    const { openMs, probes, windowMs } = rules.breaker;
    this.breaker = policies.breaker({
      openMs,
      probes,
      tripped: () => window.tripped,
      opened: () => {
        counters.opened += 1;
        const { calls, failures } = window.sums();
        const cause = `Upstream "${this.name}" is not asked for ${openMs} ms`;
        this.host.report(cause, `${cause}: ${failures} of ${calls} calls in ${windowMs} ms have failed.`);
      },
      closed: () => window.forget(),
    });
  }

  get state(): BreakerState {
    return this.breaker?.state ?? 'closed';
  }

  stats(): UpstreamGuardStats {
    return this.counters.stats(this.state);
  }

  /** Makes room for one call and counts how it ends. Never rejects. */
  async enter(call: UnansweredCall, work: () => Promise<Outcome>): Promise<Outcome> {
    const { counters } = this;
    counters.calls += 1;
    counters.inFlight += 1;
    const outcome = await this.outcomeOf(call, work);
    counters.inFlight -= 1;
    counters[outcome.end] += 1;
    return outcome;
  }

  /** A call whose request has no time left. */
  tooLate(call: UnansweredCall): Promise<Outcome> {
    const error = this.host.made(noTimeLeft(call, this.host.requestDeadlineMs!));
    return this.enter(call, () => Promise.resolve(new Outcome('ownDeadlines', true, error)));
  }

  private async outcomeOf(call: UnansweredCall, work: () => Promise<Outcome>): Promise<Outcome> {
    try {
      const running = this.bulkhead === null ? work() : this.bulkhead.run(work);
      return running === null ? this.busy(call) : await running;
    } catch (error) {
      // A headers object of the application's that cannot be read, for example.
      return new Outcome('failed', true, error);
    }
  }

  /** One attempt, if the breaker lets it. Never rejects. */
  attempt(attempt: Attempt): Promise<Outcome> {
    const ask = (): Promise<Outcome> => this.ask(attempt);
    const running = this.breaker === null ? ask() : this.breaker.run(ask);
    return running ?? Promise.resolve(this.refused(attempt.call));
  }

  private ask({ call, run, isFailure, expired }: Attempt): Promise<Outcome> {
    const { counters, host, window } = this;
    counters.attempts += 1;
    if (call.attempt > 1) counters.retries += 1;
    const startedMs = host.nowMs();
    return new Promise((resolve) => {
      const end = (outcome: Outcome): void => {
        if (outcome.verdict !== 'unknown') window?.add(outcome.verdict === 'failure');
        resolve(outcome);
      };
      const deadline = host.deadlines.start(call, (blockedMs, atMs) => {
        const isOurs = this.isOurs(call, blockedMs, atMs);
        if (!isOurs) counters.deadlines += 1;
        const error = host.made(deadlineError(this.unanswered(call), call.dueMs - call.startedMs, blockedMs));
        end(new Outcome(isOurs ? 'ownDeadlines' : 'failed', true, error));
        expired?.(error);
      });
      run((thrown, value) => {
        if (!host.deadlines.end(deadline)) return;
        const failed = isFailure(value, thrown);
        const saysNothing = !failed && thrown && isAbort(value);
        if (!failed && !saysNothing) {
          counters.durations.record(host.nowMs() - startedMs);
          this.silence.answered();
        }
        end(new Outcome(failed ? 'failed' : 'succeeded', thrown, value, saysNothing));
      });
    });
  }

  /** The upstream has not had its time: a request had less left, or our loop did not turn. */
  private isOurs({ startedMs, deadlineMs }: TimedCall, blockedMs: number, atMs: number): boolean {
    const fairMs = deadlineMs - Math.min(ORDINARY_LATE_MS, ORDINARY_LATE_SHARE * deadlineMs);
    const passedMs = atMs - startedMs;
    if (passedMs < fairMs) return true;
    const turnedMs = passedMs - blockedMs;
    return turnedMs < fairMs && !this.silence.isTooLong(startedMs, atMs, turnedMs, deadlineMs);
  }

  private refused(call: TimedCall): Outcome {
    const sent = call.attempt - 1;
    const error = openError({ ...this.unanswered(call), attempt: sent }, this.rules.breaker!.openMs);
    return new Outcome('refusedOpen', true, this.host.made(error));
  }

  private busy(call: UnansweredCall): Outcome {
    return new Outcome('refusedBusy', true, this.host.made(busyError(call, this.rules.maxInFlight!)));
  }

  private unanswered({ startedMs, attempt }: TimedCall): UnansweredCall {
    return { upstream: this.name, spentMs: this.host.nowMs() - startedMs, attempt };
  }
}
