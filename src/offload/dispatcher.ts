import type { MonotonicClock } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { OffloadStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import { Call, type Job } from './call.js';
import type { OffloadCounters, Spent } from './offload-counters.js';
import { closedBefore, full, offloadError, timedOut, whyEnded } from './offload.errors.js';
import { errorFrom } from './sent-error.js';
import type { OffloadContext } from './thread-pool.js';
import { Threads, type ThreadRules } from './threads.js';
import type { Throttling } from './throttling.js';

/** Workers that end before they begin, one after the other: then nothing more is asked of them for a while. */
const MOST_FAILED_STARTS = 3;
const NEXT_TRY_MS = 60_000;
/** For a worker to start, when its first call has given up. */
const STARTING_MS = 30_000;

/**
 * Gives calls to threads, one at a time each, in the order in which they came. Each call ends once: done, failed, timed out or
 * refused. Where workers do not start, it runs on the main thread.
 */
export class Dispatcher {
  private readonly threads: Threads;
  private readonly running = new Set<Call>();
  private readonly waiting: Call[] = [];
  private idlers: (() => void)[] = [];
  private hasBooted = false;
  private failedStarts = 0;
  /** Until then calls run on the main thread, monotonic milliseconds. */
  private mainUntilMs = 0;
  private closed = false;

  constructor(
    rules: ThreadRules,
    private readonly maxPending: number,
    private readonly counters: OffloadCounters,
    private readonly throttling: Throttling,
    private readonly report: OncePerCause,
    private readonly nowMs: MonotonicClock,
  ) {
    this.threads = new Threads(
      rules,
      (error) => this.stillborn(error),
      () => this.startWaiting(),
    );
  }

  stats(): OffloadStats {
    return this.counters.stats({
      threads: this.threads.count,
      running: this.running.size,
      pending: this.waiting.length,
      throttledMs: this.throttling.total(),
    });
  }

  /** @throws PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_TIMEOUT, PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, and what the job throws */
  async run(job: Job, context: OffloadContext): Promise<unknown> {
    if (this.closed || this.nowMs() < this.mainUntilMs) return this.here(job);
    if (!this.threads.hasFree && this.waiting.length >= this.maxPending) {
      this.counters.refused += 1;
      throw full(job.name, this.maxPending);
    }
    const call = new Call(job, context);
    try {
      // While no worker has ever started, the arguments may still be needed here.
      call.send(job.options.transfer && this.hasBooted);
    } catch (error) {
      this.counters.ended(job.name, 'failed');
      throw error;
    }
    inRootContext(() => {
      call.limit(() => this.late(call), job.options.timeoutMs);
      this.waiting.push(call);
      this.startWaiting();
    });
    return call.result;
  }

  /** On this thread; counted. */
  async here(job: Job): Promise<unknown> {
    if (job.isOwn) return job.here();
    this.counters.inline += 1;
    try {
      const value = await job.here();
      this.counters.ended(job.name, 'done');
      return value;
    } catch (error) {
      this.counters.ended(job.name, 'failed');
      throw error;
    }
  }

  /** Resolves when no call is under way. */
  idle(): Promise<void> {
    return this.isIdle ? Promise.resolve() : new Promise((resolve) => void this.idlers.push(resolve));
  }

  /** Later calls run on the main thread; those under way may end until the deadline. Then no thread is left. */
  async close(deadlineMs: number): Promise<void> {
    this.closed = true;
    const endMs = this.nowMs() + deadlineMs;
    // A call that hangs must not take their time from the hooks of the others.
    this.threads.closeFree();
    await within(deadlineMs, () => this.idle());
    for (const call of this.waiting.splice(0)) {
      call.close();
      this.failed(call, closedBefore(call.job.name));
    }
    await this.threads.close(Math.max(0, endMs - this.nowMs()));
    this.throttling.close();
  }

  private get isIdle(): boolean {
    return this.running.size === 0 && this.waiting.length === 0;
  }

  private async start(call: Call): Promise<void> {
    if (this.running.size === 0) this.throttling.begin();
    this.running.add(call);
    let died: unknown = null;
    try {
      await this.threads.run(call.task, call.stopping.signal);
    } catch (error) {
      died = error;
    }
    this.running.delete(call);
    if (this.running.size === 0) this.throttling.end();
    this.ended(call, died);
    this.startWaiting();
    if (this.closed) this.threads.closeFree();
    this.wakeIdlers();
  }

  private startWaiting(): void {
    while (this.threads.hasFree && this.waiting.length > 0) void this.start(this.waiting.shift()!);
  }

  private wakeIdlers(): void {
    if (this.isIdle) for (const wake of this.idlers.splice(0)) wake();
  }

  private ended(call: Call, died: unknown): void {
    const outcome = call.collect();
    call.close();
    if (call.settled) call.unlimited();
    const { name } = call.job;
    if (outcome?.said === 'not-booted') return this.notStarted(call, errorFrom(outcome.error));
    if (call.startedAt === null && outcome === null) {
      if (!this.closed) this.notStarted(call, died);
      else if (!call.settled) this.failed(call, closedBefore(name));
      return;
    }
    this.hasBooted = true;
    this.failedStarts = 0;
    if (call.settled) return;
    switch (outcome?.said) {
      case 'booted':
        call.resolve(outcome.methods);
        break;
      case 'done':
        this.counters.ended(name, 'done', spentOn(call, outcome));
        call.resolve(outcome.value);
        break;
      case 'failed':
        this.counters.ended(name, 'failed', spentOn(call, outcome));
        call.reject(errorFrom(outcome.error));
        break;
      default:
        this.failed(call, offloadError(`The worker ended while it ran "${name}": ${whyEnded(died)}.`, died));
    }
  }

  private failed(call: Call, error: Error): void {
    if (!call.job.isOwn) this.counters.ended(call.job.name, 'failed');
    call.reject(error);
  }

  /** A thread has ended before the job began: another one may do it. */
  private notStarted(call: Call, why: unknown): void {
    call.attempts += 1;
    this.failedStarts += 1;
    if (this.failedStarts >= MOST_FAILED_STARTS) this.giveUp(why);
    if (call.settled) return;
    if (this.nowMs() >= this.mainUntilMs && call.attempts < MOST_FAILED_STARTS && !call.moved && !this.closed) {
      try {
        call.sendAgain();
        this.waiting.unshift(call);
      } catch (error) {
        // The caller has changed its arguments meanwhile.
        this.failed(call, error as Error);
      }
    } else this.onMain(call, why);
  }

  private onMain(call: Call, why: unknown): void {
    call.close();
    if (call.moved) this.failed(call, offloadError(`No worker could run "${call.job.name}": ${whyEnded(why)}.`, why));
    else call.resolve(this.here(call.job));
  }

  private giveUp(why: unknown): void {
    this.failedStarts = MOST_FAILED_STARTS - 1;
    this.mainUntilMs = this.nowMs() + NEXT_TRY_MS;
    this.report.report(
      'workers of offload() do not start',
      `${MOST_FAILED_STARTS} workers of offload() have ended before they could work: ${whyEnded(why)}. ` +
        'Calls run on the main thread, where they block the event loop; the next try is in a minute.',
    );
    for (const call of this.waiting.splice(0)) this.onMain(call, why);
  }

  private late(call: Call): void {
    call.cancel();
    // A busy loop hears of results after its timers.
    const said = call.collect()?.said;
    if (call.settled || (said !== undefined && said !== 'not-booted')) return;
    const { name, options } = call.job;
    const place = this.waiting.indexOf(call);
    const isStarted = call.startedAt !== null;
    if (!call.job.isOwn) this.counters.timedOut += 1;
    call.reject(timedOut(name, options.timeoutMs, isStarted));
    if (place >= 0) {
      this.waiting.splice(place, 1);
      call.close();
      this.wakeIdlers();
    } else if (isStarted) call.stopping.abort();
    // Its worker is still starting, and will be there for the next call.
    else call.limit(() => call.stopping.abort(), STARTING_MS);
  }

  /** Between two calls, or before the first. */
  private stillborn(error: Error): void {
    const cause = `a worker of offload() ended with nothing to do: ${whyEnded(error)}`;
    this.report.report(cause, `${cause}.`);
    if (this.threads.count >= this.running.size) return;
    // Somebody waits for a thread that will not come.
    for (const call of this.running) if (call.collect() === null && call.startedAt === null) call.stopping.abort();
  }
}

function spentOn(call: Call, spent: Pick<Spent, 'runMs' | 'busyMs' | 'lostClass'>): Spent {
  const waitMs = Math.max(0, (call.startedAt ?? call.calledAt) - call.calledAt);
  return { ...spent, cloneMs: call.cloneMs, waitMs };
}
