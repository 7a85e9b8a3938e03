import type { MonotonicClock } from '../core/clock.js';
import type { UpstreamGuardStats } from '../core/snapshot.js';
import type { Breaker, BreakerState, MakeBreaker } from './breaker.js';
import type { Deadlines } from './deadlines.js';
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
import { isAbort, Outcome, type End, type IsFailure } from './outcome.js';
import { RecentCalls } from './recent-calls.js';

/** What an upstream may lack of its deadline and is to blame all the same: our loop was a little late, as it always is. */
const ORDINARY_LATE_MS = 50;
const ORDINARY_LATE_SHARE = 0.1;
/** Of an upstream's deadlines, for so many our loop must have turned while it was asked and answered nobody. */
const SILENT_DEADLINES = 5;

/** What gates need of their application. */
export interface GateHost {
  readonly nowMs: MonotonicClock;
  readonly deadlines: Deadlines;
  /** Says each cause once. */
  report(cause: string, message: string): void;
  /** When the request whose code calls has used up its time, monotonic milliseconds; Infinity where that is not set. */
  requestDueMs(): number;
  readonly requestDeadlineMs: number | null;
}

/** The time of one call, with all its attempts. */
export interface CallTime {
  readonly startedMs: number;
  readonly dueMs: number;
  /** What the upstream is given, milliseconds. A request that has less left makes `dueMs` come earlier. */
  readonly deadlineMs: number;
  /** Of all blocks of our loop so far, when it started. */
  readonly blockedBeforeMs: number;
}

/** Ends an attempt. */
export type Settle = (thrown: boolean, value: unknown) => void;

/** One attempt. */
export interface Attempt {
  readonly time: CallTime;
  /** 1 for the first. */
  readonly attempt: number;
  readonly isFailure: IsFailure;
  /** Sends it. */
  run(settle: Settle): void;
  /** Its time is up. */
  expired?(error: GuardError): void;
}

/** Who is let through to one upstream, and what becomes of them. */
export class Gate {
  readonly counters = new GateCounters();
  private readonly silence = new Silence();
  private breaker: Breaker | null = null;
  /** What the breaker looks at: the marked ones have failed. */
  private recent: RecentCalls | null = null;

  constructor(
    readonly name: string,
    private readonly rules: { readonly breaker: ResolvedBreaker | null; readonly maxInFlight: number | null },
    private readonly host: GateHost,
  ) {}

  /** Before the application listens. */
  use(makeBreaker: MakeBreaker): void {
    const { rules, counters, host } = this;
    if (rules.breaker === null) return;
    const { openMs, probes, windowMs, atLeast, ratio } = rules.breaker;
    const recent = (this.recent = new RecentCalls(windowMs, host.nowMs));
    this.breaker = makeBreaker({
      openMs,
      probes,
      tripped: () => {
        const { calls, marked: failures } = recent.sums();
        return calls >= atLeast && failures >= ratio * calls;
      },
      opened: () => {
        counters.opened += 1;
        const { calls, marked: failures } = recent.sums();
        const cause = `Upstream "${this.name}" is not asked for ${openMs} ms`;
        host.report(cause, `${cause}: ${failures} of ${calls} calls in ${windowMs} ms have failed.`);
      },
      closed: () => recent.forget(),
    });
  }

  get state(): BreakerState {
    return this.breaker?.state ?? 'closed';
  }

  stats(): UpstreamGuardStats {
    return this.counters.stats(this.state);
  }

  /** One call with all that `work` attempts: makes room for it and counts how it ends. Never rejects. */
  async enter(deadlineMs: number, work: (time: CallTime) => Promise<Outcome>): Promise<Outcome> {
    const { counters, host } = this;
    const startedMs = host.nowMs();
    const dueMs = Math.min(startedMs + deadlineMs, host.requestDueMs());
    const blockedBeforeMs = host.deadlines.blockedBeforeMs(startedMs);
    counters.calls += 1;
    const outcome =
      this.refusal(startedMs, dueMs) ??
      (await this.inside(() => work({ startedMs, dueMs, deadlineMs, blockedBeforeMs })));
    counters[outcome.end] += 1;
    return outcome;
  }

  private refusal(startedMs: number, dueMs: number): Outcome | null {
    const { counters, host, name } = this;
    const { maxInFlight } = this.rules;
    const call = { upstream: name, spentMs: 0, attempt: 0 };
    if (maxInFlight !== null && counters.inFlight >= maxInFlight)
      return new Outcome('refusedBusy', true, busyError(call, maxInFlight));
    if (dueMs > startedMs) return null;
    return new Outcome('ownDeadlines', true, noTimeLeft(call, host.requestDeadlineMs!));
  }

  private async inside(work: () => Promise<Outcome>): Promise<Outcome> {
    const { counters } = this;
    counters.inFlight += 1;
    try {
      return await work();
    } catch (error) {
      // A headers object of the application's that cannot be read, for example.
      return new Outcome('failed', true, error);
    } finally {
      counters.inFlight -= 1;
    }
  }

  /** One attempt, if the breaker lets it. Never rejects. */
  attempt(attempt: Attempt): Promise<Outcome> {
    const ask = (): Promise<Outcome> => this.ask(attempt);
    const running = this.breaker === null ? ask() : this.breaker.run(ask);
    return running ?? Promise.resolve(this.refused(attempt));
  }

  private ask(attempt: Attempt): Promise<Outcome> {
    const { counters, host, recent } = this;
    const { time } = attempt;
    counters.attempts += 1;
    if (attempt.attempt > 1) counters.retries += 1;
    const startedMs = host.nowMs();
    const openedBefore = counters.opened;
    return new Promise((resolve) => {
      const end = (how: End, thrown: boolean, value: unknown, saysNothing = false): void => {
        // What began before the breaker opened is no news when calls try whether the upstream is back, nor after that.
        const outcome = new Outcome(how, thrown, value, saysNothing || counters.opened !== openedBefore);
        const { judgedAs } = outcome;
        if (judgedAs !== 'unknown') recent?.add(1, judgedAs === 'failure' ? 1 : 0);
        resolve(outcome);
      };
      const deadline = host.deadlines.start(time, (blockedMs, atMs) => {
        const isOurs = this.isOurs(time, blockedMs, atMs);
        if (!isOurs) counters.deadlines += 1;
        const error = deadlineError(this.unanswered(attempt), time.dueMs - time.startedMs, blockedMs);
        end(isOurs ? 'ownDeadlines' : 'failed', true, error);
        attempt.expired?.(error);
      });
      attempt.run((thrown, value) => {
        if (!host.deadlines.end(deadline)) return;
        const failed = attempt.isFailure(value, thrown);
        const saysNothing = !failed && thrown && isAbort(value);
        if (!failed && !saysNothing) {
          counters.durations.record(host.nowMs() - startedMs);
          this.silence.answered();
        }
        end(failed ? 'failed' : 'succeeded', thrown, value, saysNothing);
      });
    });
  }

  /** The upstream has not had its time: a request had less left, or our loop did not turn. */
  private isOurs({ startedMs, deadlineMs }: CallTime, blockedMs: number, atMs: number): boolean {
    const fairMs = deadlineMs - Math.min(ORDINARY_LATE_MS, ORDINARY_LATE_SHARE * deadlineMs);
    const passedMs = atMs - startedMs;
    if (passedMs < fairMs) return true;
    const turnedMs = passedMs - blockedMs;
    return turnedMs < fairMs && !this.silence.isTooLong(startedMs, atMs, turnedMs, deadlineMs);
  }

  private refused(attempt: Attempt): Outcome {
    const sent = attempt.attempt - 1;
    const error = openError({ ...this.unanswered(attempt), attempt: sent }, this.rules.breaker!.openMs);
    return new Outcome('refusedOpen', true, error);
  }

  private unanswered({ time, attempt }: Attempt): UnansweredCall {
    return { upstream: this.name, spentMs: this.host.nowMs() - time.startedMs, attempt };
  }
}

/** For how long an upstream has answered nobody: on a loop that is often blocked, one that is dead would never be to blame. */
class Silence {
  private turnedMs = 0;
  private untilMs = -Infinity;

  answered(): void {
    this.turnedMs = 0;
  }

  /** A call has ended without an answer. Those that were under way together are one witness: a single block has ended them all. */
  isTooLong(startedMs: number, endedMs: number, turnedMs: number, deadlineMs: number): boolean {
    if (startedMs >= this.untilMs) {
      this.turnedMs += Math.max(0, turnedMs);
      this.untilMs = endedMs;
    }
    return this.turnedMs >= SILENT_DEADLINES * deadlineMs;
  }
}
