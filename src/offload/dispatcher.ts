import type { MonotonicClock } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { OffloadStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import { Call, type Job } from './call.js';
import type { OffloadCounters } from './offload-counters.js';
import { closedBefore, down, full, offloadError, timedOut, whyEnded } from './offload.errors.js';
import type { PoolRules } from './offload.options.js';
import { receiveError } from './sent-error.js';
import type { Order, ThreadPool } from './thread-pool.js';
import type { Throttling } from './throttling.js';

/** For how long no worker is started after one that could not start, milliseconds. */
const DOWN_MS = 5_000;
/** Time for a worker to start with the application, and when its caller has given up, milliseconds. */
const STARTING_MS = 30_000;

/** Gives calls to a pool of threads, in their order. Each call ends once: done, failed, timed out or refused. */
export class Dispatcher {
  private readonly waiting: Call[] = [];
  /** Calls that the pool has: never more than there may be threads. */
  private readonly running = new Set<Call>();
  private idlers: (() => void)[] = [];
  /** Ids of threads whose application has started. */
  private readonly serving = new Set<number>();
  /** A worker could not start: until then no other one is, monotonic milliseconds. */
  private downUntilMs = 0;
  private downWhy = '';
  private closed = false;

  constructor(
    private readonly pool: ThreadPool,
    private readonly rules: PoolRules,
    private readonly counters: OffloadCounters,
    private readonly throttling: Throttling,
    private readonly report: OncePerCause,
    private readonly nowMs: MonotonicClock,
  ) {
    pool.on('error', (error) => this.lost(error));
  }

  stats(): OffloadStats {
    const { counters, pool, running, throttling, waiting } = this;
    const now = { threads: pool.threads.length, running: running.size, pending: waiting.length };
    return counters.stats({ ...now, throttledMs: throttling.total() });
  }

  /**
   * @throws PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_DOWN, PERF_ERR_OFFLOAD_TIMEOUT, PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, and
   * errors of the job
   */
  async run(job: Job): Promise<unknown> {
    const { counters } = this;
    const refusal = this.refuse(job.name);
    if (refusal !== null) {
      counters.refused += 1;
      throw refusal;
    }
    const call = new Call(job);
    try {
      call.send();
      const value = await this.execute(call);
      counters.ended(job.name, 'done', call.spent);
      return value;
    } catch (error) {
      if (call.isLate) counters.timedOut += 1;
      else counters.ended(job.name, 'failed', call.spent);
      throw error;
    }
  }

  /** Has a worker load the module's file. It stays only where there are to be warm ones. */
  loadModule(): Promise<void> {
    return this.prepare({ do: 'load', thenEnds: this.rules.warm === 0 });
  }

  /** Starts the applications of `warm` workers. The log names one that could not start; calls are refused until one can. */
  async startWarm(): Promise<void> {
    await Promise.allSettled(Array.from({ length: this.rules.warm }, () => this.prepare({ do: 'boot' })));
  }

  /** Resolves when no call is in flight. */
  idle(): Promise<void> {
    return this.inFlight === 0 ? Promise.resolve() : new Promise((resolve) => void this.idlers.push(resolve));
  }

  /** Refuses later calls; those in flight may end until the deadline. Then no thread is left. */
  async close(deadlineMs: number): Promise<void> {
    this.closed = true;
    await within(deadlineMs, () => this.idle());
    for (const call of this.waiting.splice(0)) call.reject(closedBefore(call.job.name));
    await this.pool.destroy();
    this.throttling.close();
  }

  /** Such calls are not counted. */
  private async prepare(order: Order): Promise<void> {
    const name = order.do;
    const refusal = this.refuse(name);
    if (refusal !== null) throw refusal;
    const options = { timeoutMs: STARTING_MS, transfer: false };
    await this.execute(new Call({ name, parameters: [], options, order }));
  }

  private get inFlight(): number {
    return this.running.size + this.waiting.length;
  }

  private refuse(name: string): Error | null {
    const { threads, maxPending } = this.rules;
    if (this.closed) return down(name, 'the application has closed.');
    if (this.countUsable() === 0) return down(name, this.downWhy);
    return this.inFlight < threads + maxPending ? null : full(name, maxPending);
  }

  /** Threads for calls: those that there may be, or only those that serve. */
  private countUsable(): number {
    if (this.nowMs() >= this.downUntilMs) return this.rules.threads;
    for (const call of this.running) this.collect(call);
    const alive = new Set(this.pool.threads.map(({ threadId }) => threadId));
    for (const id of this.serving) if (!alive.has(id)) this.serving.delete(id);
    return this.serving.size;
  }

  private collect(call: Call): ReturnType<Call['collect']> {
    const outcome = call.collect();
    if (call.threadId !== null) this.serving.add(call.threadId);
    return outcome;
  }

  private execute(call: Call): Promise<unknown> {
    inRootContext(() => {
      if (this.inFlight === 0) this.throttling.begin();
      call.limit(() => this.expire(call), call.job.options.timeoutMs);
      this.waiting.push(call);
      this.startWaiting();
    });
    return call.result;
  }

  private startWaiting(): void {
    const { running, waiting } = this;
    const usable = this.countUsable();
    if (usable === 0) for (const call of waiting.splice(0)) call.reject(down(call.job.name, this.downWhy));
    while (waiting.length > 0 && running.size < usable) void this.start(waiting.shift()!);
  }

  private async start(call: Call): Promise<void> {
    this.running.add(call);
    let died: unknown = null;
    try {
      await this.pool.run(call.task, call.poolOptions);
    } catch (error) {
      died = call.stoppedBy ?? error;
    }
    this.running.delete(call);
    this.ended(call, died);
    this.startWaiting();
    if (this.inFlight > 0) return;
    this.throttling.end();
    for (const wake of this.idlers.splice(0)) wake();
  }

  /** `died`: the error with which its thread ended; null: none. */
  private ended(call: Call, died: unknown): void {
    const outcome = this.collect(call);
    call.close();
    const { name } = call.job;
    if (outcome?.said === 'done') return call.resolve(outcome.value);
    if (outcome?.said === 'failed') return call.reject(receiveError(outcome.error));
    const why = outcome?.said === 'not-booted' ? receiveError(outcome.error) : died;
    if (call.startedAt !== null) {
      return call.reject(offloadError(`The worker ended while it ran "${name}": ${whyEnded(why)}.`, why));
    }
    if (this.closed) return call.reject(closedBefore(name));
    this.notStarted(why);
    call.reject(down(name, this.downWhy));
  }

  private notStarted(why: unknown): void {
    const cause = `a worker of offload() could not start: ${whyEnded(why)}`;
    this.downWhy = `${cause}. The next one is tried within 5 s.`;
    this.downUntilMs = this.nowMs() + DOWN_MS;
    this.report.report(cause, `${cause}. Calls that need it are refused with PERF_ERR_OFFLOAD_DOWN (503).`);
  }

  private expire(call: Call): void {
    // On a busy event loop the timer may fire before a result that has arrived is read.
    if (this.collect(call) !== null) return;
    const { name, options } = call.job;
    call.isLate = true;
    call.reject(timedOut(name, options.timeoutMs, call.startedAt !== null));
    const place = this.waiting.indexOf(call);
    if (place >= 0) this.waiting.splice(place, 1);
    else if (call.startedAt !== null) call.stop(new Error('its call took too long'));
    // A worker that is still starting may serve the next call.
    else call.limit(() => call.stop(new Error('it took too long')), STARTING_MS);
  }

  /** A thread has ended without a task. */
  private lost(error: Error): void {
    if (this.closed) return;
    if (this.pool.threads.length >= this.running.size) {
      const cause = `a worker of offload() ended with nothing to do: ${whyEnded(error)}`;
      return this.report.report(cause, `${cause}.`);
    }
    // It has ended before its call came to it. Piscina does not name the call.
    for (const call of this.running) {
      this.collect(call);
      if (call.startedAt === null) call.stop(error);
    }
  }
}
