import { once } from 'node:events';
import { MessageChannel } from 'node:worker_threads';
import type { MonotonicClock } from '../core/clock.js';
import type { OncePerCause } from '../core/reporter.js';
import { inRootContext } from '../core/root-context.js';
import type { OffloadStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import { Call, type Job } from './call.js';
import type { OffloadCounters, Spent } from './offload-counters.js';
import { closed, closedBefore, down, full, offloadError, timedOut, whyEnded } from './offload.errors.js';
import { receiveError } from './sent-error.js';
import type { OffloadContext, ThreadPool, ThreadPoolOptions } from './thread-pool.js';
import type { Throttling } from './throttling.js';

/** How long calls are refused after a worker could not start, milliseconds. */
const DOWN_MS = 5_000;
/** Time for a worker to start when the call that it starts for was given up, milliseconds. */
const STARTING_MS = 30_000;

export interface PoolRules extends Omit<ThreadPoolOptions, 'lost'> {
  readonly maxPending: number;
}

/** Gives calls to a pool of threads. Each call ends once: done, failed, timed out or refused. */
export class Dispatcher {
  private pool: ThreadPool | null = null;
  private readonly calls = new Set<Call>();
  private idlers: (() => void)[] = [];
  /** Until then calls are refused unless a worker serves, since another could not start; monotonic milliseconds. */
  private downUntilMs = 0;
  private downReason = '';
  /** Ids of threads whose application has started. */
  private readonly started = new Set<number>();
  private closed = false;
  /** Threads whose applications are closing, or closed. */
  private readonly endings: Promise<void>[] = [];

  constructor(
    private readonly openPool: (options: ThreadPoolOptions) => ThreadPool,
    private readonly rules: PoolRules,
    private readonly counters: OffloadCounters,
    private readonly throttling: Throttling,
    private readonly report: OncePerCause,
    private readonly nowMs: MonotonicClock,
  ) {}

  stats(): OffloadStats {
    const waiting = this.countCalls();
    const running = Math.min(waiting, this.rules.threads);
    const pending = waiting - running;
    const threads = this.pool?.threads ?? 0;
    return this.counters.stats({ threads, running, pending, throttledMs: this.throttling.total() });
  }

  /**
   * @throws PERF_ERR_OFFLOAD_FULL, PERF_ERR_OFFLOAD_DOWN, PERF_ERR_OFFLOAD_TIMEOUT, PERF_ERR_SERIALIZE, PERF_ERR_OFFLOAD, and
   * errors of the job
   */
  async run(job: Job, context: OffloadContext): Promise<unknown> {
    const { counters } = this;
    const refusal = this.refuse(job);
    if (refusal !== null) {
      if (job.isOwn !== true) counters.refused += 1;
      throw refusal;
    }
    const call = new Call(job, context);
    try {
      call.send();
    } catch (error) {
      counters.ended(job.name, 'failed');
      throw error;
    }
    inRootContext(() => {
      call.limit(() => this.expire(call), job.options.timeoutMs);
      void this.start(call);
    });
    return call.result;
  }

  /** Resolves when no call is in flight. */
  idle(): Promise<void> {
    return this.calls.size === 0 ? Promise.resolve() : new Promise((resolve) => void this.idlers.push(resolve));
  }

  /** Refuses later calls; those in flight may end until the deadline. Then no thread is left. */
  async close(deadlineMs: number): Promise<void> {
    this.closed = true;
    const endMs = this.nowMs() + deadlineMs;
    this.closeFreeThreads();
    await within(deadlineMs, () => this.idle());
    for (const call of this.calls) {
      if (call.collect() === null && call.startedAt === null) this.giveUp(call, closedBefore(call.job.name));
    }
    await within(Math.max(0, endMs - this.nowMs()), () => Promise.all(this.endings));
    await this.pool?.destroy();
    this.throttling.close();
  }

  private refuse({ name }: Job): Error | null {
    const { threads, maxPending } = this.rules;
    if (this.closed) return closed(name);
    if (this.isDown()) return down(name, this.downReason);
    return this.countCalls() < threads + maxPending ? null : full(name, maxPending);
  }

  /** Calls that take a thread or a place in the queue. One that was given up in the queue takes none, though it stays until its turn. */
  private countCalls(): number {
    let count = 0;
    for (const { settled, threadId } of this.calls) if (!settled || threadId !== null) count += 1;
    return count;
  }

  private async start(call: Call): Promise<void> {
    if (this.calls.size === 0) this.throttling.begin();
    this.calls.add(call);
    let died: unknown = null;
    try {
      this.pool ??= this.openPool({ ...this.rules, lost: (reason, started) => this.lost(reason, started) });
      await this.pool.run(call.task);
    } catch (error) {
      died = error;
    }
    this.calls.delete(call);
    if (this.calls.size === 0) this.throttling.end();
    this.ended(call, died);
    if (this.closed) this.closeFreeThreads();
    if (this.calls.size === 0) for (const wake of this.idlers.splice(0)) wake();
  }

  /** Settles a call whose task has ended. `died`: the error with which its thread ended; null: none. */
  private ended(call: Call, died: unknown): void {
    const outcome = call.collect();
    call.close();
    call.unlimited();
    const { name, order } = call.job;
    // A call of a file proves nothing: files run without the application.
    const isBooted =
      order.do === 'boot' ? outcome?.said === 'booted' : order.do === 'method' && call.startedAt !== null;
    if (isBooted) this.started.add(call.threadId!);
    const begun = call.startedAt !== null || outcome !== null;
    if (outcome?.said === 'not-booted' || (!begun && !call.settled && !this.closed)) {
      this.notStarted(outcome?.said === 'not-booted' ? receiveError(outcome.error) : died);
      if (!call.settled) this.fail(call, down(name, this.downReason));
    }
    if (call.settled) return;
    switch (outcome?.said) {
      case 'booted':
        return call.resolve(null);
      case 'done':
        this.counters.ended(name, 'done', spentOn(call, outcome));
        return call.resolve(outcome.value);
      case 'failed':
        if (call.job.isOwn !== true) this.counters.ended(name, 'failed', spentOn(call, outcome));
        return call.reject(receiveError(outcome.error));
      default: {
        const ended = `The worker ended while it ran "${name}": ${whyEnded(died)}.`;
        this.fail(call, begun ? offloadError(ended, died) : closedBefore(name));
      }
    }
  }

  private fail(call: Call, error: Error): void {
    if (call.job.isOwn !== true) this.counters.ended(call.job.name, 'failed');
    call.reject(error);
  }

  /** A worker could not start: calls in the queue have no reason to wait on, unless another worker serves the queue. */
  private notStarted(why: unknown): void {
    const reason = whyEnded(why);
    this.downReason = reason;
    this.downUntilMs = this.nowMs() + DOWN_MS;
    this.report.report(
      `a worker of offload() could not start: ${reason}`,
      `A worker of offload() could not start: ${reason}. Calls that need it are refused with PERF_ERR_OFFLOAD_DOWN (503).`,
    );
    if (!this.isDown()) return;
    for (const call of this.calls) {
      if (call.settled || call.collect() !== null || call.startedAt !== null) continue;
      this.giveUp(call, down(call.job.name, reason));
    }
  }

  /** A worker could not start a short time ago, and no other one serves. */
  private isDown(): boolean {
    return this.nowMs() < this.downUntilMs && !this.isServed();
  }

  /** Whether a worker runs a call, or has started its application. */
  private isServed(): boolean {
    for (const call of this.calls) {
      call.collect();
      if (call.startedAt !== null) return true;
    }
    for (const id of this.started) {
      if (this.pool?.has(id) === true) return true;
      this.started.delete(id);
    }
    return false;
  }

  private giveUp(call: Call, error: Error): void {
    this.fail(call, error);
    this.abandon(call);
  }

  /** Ends the thread of a call that was given up; one that is still starting may serve the next call. */
  private abandon(call: Call): void {
    call.cancel();
    const { threadId, startedAt } = call;
    if (threadId === null) return;
    const end = (): void => this.pool?.end(threadId);
    if (startedAt === null) call.limit(end, STARTING_MS);
    else end();
  }

  private expire(call: Call): void {
    // On a busy event loop the timer may fire before a result that has arrived is read.
    const said = call.collect()?.said;
    if (call.settled || (said !== undefined && said !== 'not-booted')) return;
    const { name, options, isOwn } = call.job;
    if (isOwn !== true) this.counters.timedOut += 1;
    call.reject(timedOut(name, options.timeoutMs, call.startedAt !== null));
    this.abandon(call);
  }

  private lost(reason: Error | null, started: boolean): void {
    if (this.closed) return;
    if (!started) this.notStarted(reason ?? new Error('it ended while it started'));
    else if (reason !== null) {
      const cause = `a worker of offload() ended with nothing to do: ${whyEnded(reason)}`;
      this.report.report(cause, `${cause}.`);
    }
    // The call of that thread, if any, ends first.
    setImmediate(() => this.replaceLost());
  }

  /** Piscina starts no thread for its queue in place of one that has ended: a new task makes it start one. */
  private replaceLost(): void {
    // The next one would most likely not start either, and cost one more call.
    if (this.nowMs() < this.downUntilMs && this.isServed()) return;
    const isNeeded = [...this.calls].some((call) => !call.settled && call.collect() === null && call.threadId === null);
    if (isNeeded) void this.wakeQueue();
  }

  private async wakeQueue(): Promise<void> {
    try {
      await this.pool!.run({ port: null, order: { do: 'nothing' }, context: null });
    } catch {
      // The thread has ended: `lost` is called.
    }
  }

  /** Runs the shutdown hooks of workers without a call. */
  private closeFreeThreads(): void {
    const { pool } = this;
    if (pool === null) return;
    const free = pool.threads - this.countCalls() - this.endings.length;
    for (let i = 0; i < free; i++) this.endings.push(closeApplication(pool));
  }
}

async function closeApplication(pool: ThreadPool): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const ended = pool.run({ port: port2, order: { do: 'end' }, context: null }).catch(() => {});
  await Promise.race([once(port1, 'message'), ended]);
  port1.close();
}

function spentOn(call: Call, spent: Pick<Spent, 'runMs' | 'busyMs'>): Spent {
  const waitMs = Math.max(0, (call.startedAt ?? call.calledAt) - call.calledAt);
  return { ...spent, cloneMs: call.cloneMs, waitMs };
}
