import type { MonotonicClock } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { OffloadStats } from '../core/snapshot.js';
import { describeReason } from '../core/reason.js';
import { within } from '../core/within.js';
import { Call, type Job } from './call.js';
import type { OffloadCounters } from './offload-counters.js';
import { down, full, offloadError, timedOut } from './offload.errors.js';
import type { PoolOptions } from './offload.options.js';
import { receiveError } from './sent-error.js';
import type { ThreadPool } from './thread-pool.js';

/** For how long no worker is started after one that could not start, milliseconds. */
const DOWN_MS = 5_000;
/** Time for loading the module's file, and for a warm worker, milliseconds. */
const PREPARING_MS = 30_000;
const CLOSED = 'the application has closed.';

/**
 * Gives calls to a pool of threads, in their order. Piscina's own queue does not limit calls that can be stopped, loses their order,
 * and starts no thread for them when one has ended: the pool gets a call when there may be a thread for it.
 */
export class Dispatcher {
  private readonly waiting: Call[] = [];
  /** Calls that the pool has: never more than there may be threads. */
  private readonly running = new Map<Call, Promise<void>>();
  /** Threads whose application has started. */
  private readonly serving = new WeakSet<object>();
  /** A worker could not start: until then no other one is, monotonic milliseconds. */
  private downUntilMs = 0;
  private downWhy = '';
  private closed = false;

  constructor(
    private readonly pool: ThreadPool,
    private readonly options: PoolOptions,
    private readonly counters: OffloadCounters,
    private readonly report: OncePerCause,
    private readonly nowMs: MonotonicClock,
  ) {
    pool.on('error', (error) => this.lost(error));
  }

  stats(): OffloadStats {
    const { counters, pool, running, waiting } = this;
    return counters.stats({ threads: pool.threads.length, running: running.size, pending: waiting.length });
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
      counters.ended('done', call.spent);
      return value;
    } catch (error) {
      if (call.isLate) counters.timedOut += 1;
      else if (call.isRefused) counters.refused += 1;
      else counters.ended('failed', call.spent);
      throw error;
    }
  }

  /** Has a worker load the module's file, or start its application. Not counted. */
  async prepare(kind: 'load' | 'boot'): Promise<void> {
    const refusal = this.refuse(kind);
    if (refusal !== null) throw refusal;
    const options = { timeoutMs: PREPARING_MS, transfer: false };
    await this.execute(new Call({ do: kind, name: kind, file: this.options.module.href, parameters: [], options }));
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.race(this.running.values());
  }

  /** Refuses later calls; those in flight may end until the deadline. Then no thread is left. */
  async close(deadlineMs: number): Promise<void> {
    this.closed = true;
    await within(deadlineMs, () => this.idle());
    this.refuseWaiting(CLOSED);
    await this.pool.destroy();
    this.counters.close();
  }

  private refuse(name: string): Error | null {
    const { threads, maxPending } = this.options;
    if (this.closed) return down(name, CLOSED);
    if (this.countUsable() === 0) return down(name, this.downWhy);
    return this.running.size + this.waiting.length < threads + maxPending ? null : full(name, maxPending);
  }

  /** Threads for calls: those that there may be, or only those that serve. */
  private countUsable(): number {
    if (this.nowMs() >= this.downUntilMs) return this.options.threads;
    for (const call of this.running.keys()) this.collect(call);
    return this.pool.threads.filter((thread) => this.serving.has(thread)).length;
  }

  private collect(call: Call): ReturnType<Call['collect']> {
    const reply = call.collect();
    const thread = this.pool.threads.find(({ threadId }) => threadId === call.threadId);
    if (thread !== undefined) this.serving.add(thread);
    return reply;
  }

  private async execute(call: Call): Promise<unknown> {
    const timer = inRootContext(() => {
      this.counters.began(() => this.running.size > 0);
      this.waiting.push(call);
      this.startWaiting();
      return setTimeout(() => this.expire(call), call.job.options.timeoutMs);
    });
    try {
      return await call.result;
    } finally {
      clearTimeout(timer);
    }
  }

  private startWaiting(): void {
    const { running, waiting } = this;
    const usable = this.countUsable();
    if (usable === 0) this.refuseWaiting(this.downWhy);
    while (waiting.length > 0 && running.size < usable) {
      const call = waiting.shift()!;
      running.set(call, this.start(call));
    }
  }

  private refuseWaiting(why: string): void {
    for (const call of this.waiting.splice(0)) {
      call.channel.port1.close();
      this.refuseCall(call, why);
    }
  }

  private refuseCall(call: Call, why: string): void {
    call.isRefused = true;
    call.reject(down(call.job.name, why));
  }

  private async start(call: Call): Promise<void> {
    const { channel, stopping } = call;
    const { signal } = stopping;
    let died: unknown = null;
    try {
      await this.pool.run(call.task, { transferList: [channel.port2], signal });
    } catch (error) {
      died = signal.reason ?? error;
    }
    this.running.delete(call);
    this.answer(call, died);
    this.startWaiting();
  }

  /** `died`: the error with which its thread ended; null: none. */
  private answer(call: Call, died: unknown): void {
    const reply = this.collect(call);
    call.channel.port1.close();
    const { name } = call.job;
    if (reply?.said === 'done') return call.resolve(reply.value);
    const error = reply === null ? died : receiveError(reply.error);
    if (call.startedAt === null) {
      if (!this.closed) this.notStarted(error);
      return this.refuseCall(call, this.closed ? CLOSED : this.downWhy);
    }
    if (reply !== null) return call.reject(error);
    call.reject(offloadError(`The worker ended while it ran "${name}": ${describeReason(died, 500)}.`, died));
  }

  private notStarted(why: unknown): void {
    const cause = `a worker of offload() could not start: ${describeReason(why, 500)}`;
    this.downWhy = `${cause}. No other one is started for 5 s.`;
    this.downUntilMs = this.nowMs() + DOWN_MS;
    this.report.report(cause, `${this.downWhy} Until then calls that need it get PERF_ERR_OFFLOAD_DOWN (503).`);
  }

  private expire(call: Call): void {
    // On a busy event loop the timer may fire before a result that has arrived is read.
    if (this.collect(call) !== null) return;
    const { name, options } = call.job;
    call.isLate = true;
    call.reject(timedOut(name, options.timeoutMs, call.startedAt !== null));
    const place = this.waiting.indexOf(call);
    if (place >= 0) {
      this.waiting.splice(place, 1);
      call.channel.port1.close();
    }
    // A worker that is still starting may serve the next call.
    if (call.startedAt !== null) call.stopping.abort(new Error('its call took too long'));
  }

  /** A thread has ended without a task. */
  private lost(error: Error): void {
    if (this.closed) return;
    const cause = `a worker of offload() ended while it ran no call: ${describeReason(error, 500)}`;
    const advice = 'Look for a timer or a listener in its module that throws, or for what ends the thread.';
    this.report.report(cause, `${cause}. The next call starts another one. ${advice}`);
    // It may have ended before its call came to it. Piscina does not name that call.
    if (this.pool.threads.length >= this.running.size) return;
    for (const call of this.running.keys()) {
      this.collect(call);
      if (call.startedAt === null) call.stopping.abort(error);
    }
  }
}
