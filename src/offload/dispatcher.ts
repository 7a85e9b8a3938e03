import { MessageChannel } from 'node:worker_threads';
import type { MonotonicClock } from '../core/clock.js';
import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { OffloadStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import { Call, type Job } from './call.js';
import type { OffloadCounters } from './offload-counters.js';
import { full, offloadError, timedOut } from './offload.errors.js';
import { errorFrom } from './sent-error.js';
import type { OffloadContext, ThreadPool } from './thread-pool.js';
import type { Throttling } from './throttling.js';

/** Workers that end before they begin, one after the other: then nothing more is asked of them for a while. */
const MOST_FAILED_STARTS = 3;
const NEXT_TRY_MS = 60_000;
/** For a worker to start, when its first call has given up. */
const STARTING_MS = 30_000;
/** For the hooks of an application whose thread is not needed any more. */
const LEAVE_MS = 30_000;

export interface DispatcherRules {
  readonly threads: number;
  readonly maxPending: number;
  /** Of the threads, so many stay. */
  readonly warm: number;
  /** The others end when nobody has needed them for so long. */
  readonly idleMs: number;
  /** Called at the first use. */
  open(stillborn: (error: Error) => void): ThreadPool;
}

/**
 * Gives calls to threads, one at a time each, in the order in which they came. Each call ends once: done, failed, timed out or
 * refused. Where workers do not start, it runs on the main thread.
 */
export class Dispatcher {
  private pool: ThreadPool | null = null;
  private readonly running = new Set<Call>();
  private readonly waiting: Call[] = [];
  /** Threads that nobody needs, whose applications are closing. */
  private readonly leaving = new Set<Promise<void>>();
  /** Threads that were needed at a time since it was last looked. */
  private needed = 0;
  private idleTimer: NodeJS.Timeout | undefined;
  private idlers: (() => void)[] = [];
  private hasBooted = false;
  private failedStarts = 0;
  /** Until then calls run on the main thread, monotonic milliseconds. */
  private mainUntilMs = 0;
  private closed = false;

  constructor(
    private readonly rules: DispatcherRules,
    private readonly counters: OffloadCounters,
    private readonly throttling: Throttling,
    private readonly report: OncePerCause,
    private readonly nowMs: MonotonicClock,
  ) {}

  stats(): OffloadStats {
    const { pool, running, waiting, throttling } = this;
    const threads = pool?.threads.length ?? 0;
    return this.counters.stats({
      threads,
      running: running.size,
      pending: waiting.length,
      throttledMs: throttling.total(),
    });
  }

  /** @throws PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_TIMEOUT, PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, and what the job throws */
  async run(job: Job, context: OffloadContext): Promise<unknown> {
    if (this.closed || this.nowMs() < this.mainUntilMs) return this.here(job);
    const { threads, maxPending } = this.rules;
    if (this.busy >= threads && this.waiting.length >= maxPending) {
      this.counters.refused += 1;
      throw full(job.name, maxPending);
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
      if (this.busy < threads) void this.start(call);
      else this.waiting.push(call);
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
    await within(deadlineMs, () => this.idle());
    for (const call of this.waiting.splice(0)) {
      call.close();
      this.failed(call, closedBefore(call.job.name));
    }
    clearInterval(this.idleTimer);
    const { pool, leaving } = this;
    if (pool !== null) {
      const free = Math.max(0, pool.threads.length - this.busy);
      const closing = Array.from({ length: free }, () => closeOne(pool, 'close'));
      await within(Math.max(0, endMs - this.nowMs()), () => Promise.all([...leaving, ...closing]));
      await pool.destroy();
    }
    this.throttling.close();
  }

  private get isIdle(): boolean {
    return this.running.size === 0 && this.waiting.length === 0;
  }

  private get busy(): number {
    return this.running.size + this.leaving.size;
  }

  private async start(call: Call): Promise<void> {
    if (this.running.size === 0) this.throttling.begin();
    this.running.add(call);
    this.needed = Math.max(this.needed, this.running.size);
    let died: unknown = null;
    try {
      this.pool ??= this.open();
      await this.pool.run(call.task, call.signal);
    } catch (error) {
      died = error;
    }
    this.running.delete(call);
    if (this.running.size === 0) this.throttling.end();
    this.ended(call, died);
    this.startWaiting();
    this.wakeIdlers();
  }

  private startWaiting(): void {
    while (this.busy < this.rules.threads && this.waiting.length > 0) void this.start(this.waiting.shift()!);
  }

  private open(): ThreadPool {
    this.idleTimer = setInterval(() => this.endIdle(), this.rules.idleMs).unref();
    return this.rules.open((error) => this.stillborn(error));
  }

  /** Ends the threads that nobody has needed since the last time, with the hooks of their applications. */
  private endIdle(): void {
    const { pool, leaving, needed, rules } = this;
    this.needed = this.running.size;
    if (pool === null) return;
    for (let spare = pool.threads.length - leaving.size - Math.max(needed, rules.warm); spare > 0; spare--) {
      const left = closeOne(pool, 'end', AbortSignal.timeout(LEAVE_MS)).then(() => {
        leaving.delete(left);
        this.startWaiting();
      });
      leaving.add(left);
    }
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
      call.sendAgain();
      this.waiting.unshift(call);
    } else this.onMain(call, why);
  }

  private onMain(call: Call, why: unknown): void {
    call.close();
    call.unlimited();
    if (call.moved) {
      this.failed(call, offloadError(`No worker could run "${call.job.name}": ${whyEnded(why)}.`, why));
      return;
    }
    void this.here(call.job).then(
      (value) => call.resolve(value),
      (error: unknown) => call.reject(error),
    );
  }

  private giveUp(why: unknown): void {
    this.failedStarts = MOST_FAILED_STARTS - 1;
    this.mainUntilMs = this.nowMs() + NEXT_TRY_MS;
    const cause = 'workers of offload() do not start';
    this.report.report(
      cause,
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
    } else if (isStarted) call.stop();
    // Its worker is still starting, and will be there for the next call.
    else call.limit(() => call.stop(), STARTING_MS);
  }

  /** Between two calls, or before the first. */
  private stillborn(error: Error): void {
    const cause = `a worker of offload() ended with nothing to do: ${whyEnded(error)}`;
    this.report.report(cause, `${cause}.`);
    if ((this.pool?.threads.length ?? 0) >= this.running.size) return;
    // Somebody waits for a thread that will not come.
    for (const call of this.running) if (call.collect() === null && call.startedAt === null) call.stop();
  }
}

const closedBefore = (name: string): Error =>
  offloadError(`"${name}" was waiting for a worker when the application closed.`);

/** Ends the application of one free worker. */
async function closeOne(
  pool: ThreadPool,
  order: 'close' | 'end',
  signal = new AbortController().signal,
): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  try {
    await pool.run({ port: port2, order: { do: order } }, signal);
  } catch {
    // It has ended already.
  } finally {
    port1.close();
  }
}

function spentOn(call: Call, { runMs, busyMs }: { runMs: number; busyMs: number }) {
  const waitMs = Math.max(0, (call.startedAt ?? call.calledAt) - call.calledAt);
  return { runMs, busyMs, cloneMs: call.cloneMs, waitMs };
}

/** Longer than others: advice stands at its end. */
function whyEnded(error: unknown): string {
  const isFull = (error as NodeJS.ErrnoException | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
  return `${reasonOf(error, 500)}${isFull ? ' (`heapLimitMb`)' : ''}`;
}
