import { performance } from 'node:perf_hooks';
import { MessageChannel, receiveMessageOnPort, type MessagePort } from 'node:worker_threads';
import type { Spent } from './offload-counters.js';
import { notCloneable } from './offload.errors.js';
import type { ResolvedRunOptions } from './offload.options.js';
import { sendError } from './sent-error.js';
import type { Order, Said, ThreadTask } from './thread-pool.js';
import { findMovable, isCloneable } from './transferables.js';

/** The work of one call. */
export interface Job {
  /** `'Reports.render'` */
  readonly name: string;
  readonly parameters: unknown[];
  readonly options: ResolvedRunOptions;
  readonly order: Order;
}

type Ended = Exclude<Said, { said: 'started' }>;

/** One job on its way to a worker and back. */
export class Call {
  /** Epoch milliseconds at which the worker began; null before. */
  startedAt: number | null = null;
  /** The thread whose application serves it; null before, and for a file. */
  threadId: number | null = null;
  isLate = false;
  private readonly calledAt = Date.now();
  /** Time that the main thread has spent on arguments and result, milliseconds. */
  private cloneMs = 0;
  private readonly channel = new MessageChannel();
  private readonly stopping = new AbortController();
  private outcome: Ended | null = null;
  private timer: NodeJS.Timeout | undefined;
  private settle!: { resolve: (value: unknown) => void; reject: (error: unknown) => void };
  readonly result = new Promise<unknown>((resolve, reject) => (this.settle = { resolve, reject }));

  constructor(readonly job: Job) {}

  /**
   * Sends the arguments, as they are now, ahead of the order.
   * @throws PERF_ERR_SERIALIZE with the argument
   */
  send(): void {
    const { parameters, name, options } = this.job;
    const startedMs = performance.now();
    try {
      this.channel.port1.postMessage(parameters, options.transfer ? findMovable(parameters) : []);
    } catch (error) {
      this.close();
      const index = parameters.findIndex((parameter) => !isCloneable(parameter));
      throw notCloneable(index < 0 ? `An argument of "${name}"` : `Argument ${index + 1} of "${name}"`, error);
    }
    this.cloneMs += performance.now() - startedMs;
  }

  get task(): ThreadTask {
    const { order, options } = this.job;
    return { port: this.channel.port2, order, deadlineAt: this.calledAt + options.timeoutMs };
  }

  get poolOptions(): { transferList: MessagePort[]; signal: AbortSignal } {
    return { transferList: [this.channel.port2], signal: this.stopping.signal };
  }

  /** Ends the thread that has it. */
  stop(why: Error): void {
    this.stopping.abort(why);
  }

  /** Why it was stopped, if it was. */
  get stoppedBy(): unknown {
    return this.stopping.signal.reason;
  }

  /** Calls `late` unless it has ended by then. */
  limit(late: () => void, ms: number): void {
    this.timer = setTimeout(late, ms);
  }

  /** Reads the worker's answers so far; null while it has not ended the task, and when it was cut off. Never throws. */
  collect(): Ended | null {
    while (this.outcome === null) {
      const startedMs = performance.now();
      const said = this.readNext();
      if (said === null) return null;
      if (said.said === 'started') {
        this.startedAt = said.at;
        this.threadId = said.threadId;
      } else {
        this.cloneMs += performance.now() - startedMs;
        this.outcome = said;
      }
    }
    return this.outcome;
  }

  private readNext(): Said | null {
    try {
      return (receiveMessageOnPort(this.channel.port1)?.message as Said | undefined) ?? null;
    } catch (error) {
      // A value that the worker could send may be one that this thread cannot make.
      const lost = sendError(notCloneable(`The result of "${this.job.name}"`, error));
      return { said: 'failed', error: lost, runMs: 0, busyMs: 0 };
    }
  }

  /** Null for a call that no worker has ended. */
  get spent(): Spent | null {
    const { outcome, startedAt, calledAt, cloneMs } = this;
    if (outcome === null || startedAt === null || outcome.said === 'not-booted') return null;
    const { runMs, busyMs } = outcome;
    return { runMs, busyMs, cloneMs, waitMs: Math.max(0, startedAt - calledAt) };
  }

  /** No thread has it any more. */
  close(): void {
    clearTimeout(this.timer);
    this.channel.port1.close();
  }

  resolve(value: unknown): void {
    clearTimeout(this.timer);
    this.settle.resolve(value);
  }

  reject(error: unknown): void {
    clearTimeout(this.timer);
    this.settle.reject(error);
  }
}
