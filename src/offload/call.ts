import { performance } from 'node:perf_hooks';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { notCloneable } from './offload.errors.js';
import type { ResolvedRunOptions } from './offload.options.js';
import { sendError } from './sent-error.js';
import type { OffloadContext, Order, Said, ThreadTask } from './thread-pool.js';
import { findMovable, isCloneable } from './transferables.js';

/** The work of one call. */
export interface Job {
  /** `'Reports.render'` */
  readonly name: string;
  readonly parameters: unknown[];
  readonly options: ResolvedRunOptions;
  /** A job of this library itself is not counted. */
  readonly isOwn?: true;
  readonly order: Order;
  /** Runs it on this thread. */
  here(): Promise<unknown>;
}

type Ended = Exclude<Said, { said: 'taken' | 'started' }>;

/** One job on its way to a worker and back. */
export class Call {
  /** The thread that has it, whose application may still be starting; null in the queue. */
  threadId: number | null = null;
  /** Epoch milliseconds at which the worker began; null before. */
  startedAt: number | null = null;
  /** Time that the main thread has spent on arguments and result, milliseconds. */
  cloneMs = 0;
  settled = false;
  readonly calledAt = Date.now();
  private readonly channel = new MessageChannel();
  private outcome: Ended | null = null;
  private timer: NodeJS.Timeout | undefined;
  private settle!: { resolve: (value: unknown) => void; reject: (error: unknown) => void };
  readonly result = new Promise<unknown>((resolve, reject) => (this.settle = { resolve, reject }));

  constructor(
    readonly job: Job,
    private readonly context: OffloadContext,
  ) {}

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
    return { port: this.channel.port2, order: this.job.order, context: this.context };
  }

  /** Calls `late` unless it has ended by then. */
  limit(late: () => void, ms: number): void {
    this.timer = setTimeout(late, ms);
  }

  unlimited(): void {
    clearTimeout(this.timer);
  }

  /** A worker that has not begun will not. */
  cancel(): void {
    this.channel.port1.postMessage(null);
  }

  /** Reads the worker's answers so far; null while it has not ended the task, and when it was cut off. Never throws. */
  collect(): Ended | null {
    while (this.outcome === null) {
      const startedMs = performance.now();
      const said = this.readNext();
      if (said === null) return null;
      if (said.said === 'taken') this.threadId = said.threadId;
      else if (said.said === 'started') this.startedAt = said.at;
      else {
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

  close(): void {
    this.channel.port1.close();
  }

  resolve(value: unknown): void {
    this.end();
    this.settle.resolve(value);
  }

  reject(error: unknown): void {
    this.end();
    this.settle.reject(error);
  }

  private end(): void {
    this.settled = true;
    this.unlimited();
  }
}
