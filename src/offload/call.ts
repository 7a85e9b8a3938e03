import { performance } from 'node:perf_hooks';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import type { Spent } from './offload-counters.js';
import { notCloneable } from './offload.errors.js';
import type { ResolvedRunOptions } from './offload.options.js';
import { sendError } from './sent-error.js';
import type { Reply, ThreadTask } from './thread-pool.js';
import { findMovable, isCloneable } from './transferables.js';

/** The work of one call. */
export interface Job extends Pick<ThreadTask, 'do' | 'name' | 'file'> {
  readonly parameters: unknown[];
  readonly options: ResolvedRunOptions;
}

/** One job on its way to a worker and back. */
export class Call {
  /** Epoch milliseconds at which the worker began; null before. */
  startedAt: number | null = null;
  /** The thread whose application serves it; null before, and where there is no application. */
  threadId: number | null = null;
  isLate = false;
  /** No worker could start it. */
  isRefused = false;
  /** Ends the thread that has it. */
  readonly stopping = new AbortController();
  readonly channel = new MessageChannel();
  declare readonly resolve: (value: unknown) => void;
  declare readonly reject: (error: unknown) => void;
  readonly result = new Promise<unknown>((resolve, reject) => Object.assign(this, { resolve, reject }));
  private readonly calledAt = Date.now();
  /** Time that the main thread has spent on arguments and result, milliseconds. */
  private cloneMs = 0;
  private ended: Exclude<Reply, { said: 'started' }> | null = null;

  constructor(readonly job: Job) {}

  /**
   * Sends the arguments, as they are now, ahead of the task.
   * @throws PERF_ERR_SERIALIZE with the argument
   */
  send(): void {
    const { parameters, name, options } = this.job;
    const startedMs = performance.now();
    try {
      this.channel.port1.postMessage(parameters, options.transfer ? findMovable(parameters) : []);
    } catch (error) {
      this.channel.port1.close();
      const index = parameters.findIndex((parameter) => !isCloneable(parameter));
      throw notCloneable(index < 0 ? `An argument of "${name}"` : `Argument ${index + 1} of "${name}"`, error);
    }
    this.cloneMs += performance.now() - startedMs;
  }

  get task(): ThreadTask {
    const { do: kind, name, file, options } = this.job;
    const { timeoutMs, transfer } = options;
    return { do: kind, name, file, transfer, deadlineAt: this.calledAt + timeoutMs, port: this.channel.port2 };
  }

  /** Reads the worker's replies so far; null while it has not ended the task, and when it was cut off. Never throws. */
  collect(): Call['ended'] {
    while (this.ended === null) {
      const startedMs = performance.now();
      const reply = this.readNext();
      if (reply === null) return null;
      if (reply.said === 'started') {
        this.startedAt = reply.at;
        this.threadId = reply.threadId;
      } else {
        this.cloneMs += performance.now() - startedMs;
        this.ended = reply;
      }
    }
    return this.ended;
  }

  private readNext(): Reply | null {
    try {
      return (receiveMessageOnPort(this.channel.port1)?.message as Reply | undefined) ?? null;
    } catch (error) {
      // A value that the worker could send may be one that this thread cannot make.
      const lost = sendError(notCloneable(`The result of "${this.job.name}"`, error));
      return { said: 'failed', error: lost, runMs: 0, busyMs: 0 };
    }
  }

  /** Null for a call that no worker has ended. */
  get spent(): Spent | null {
    const { ended, startedAt, calledAt, cloneMs } = this;
    if (ended === null || startedAt === null) return null;
    return { runMs: ended.runMs, busyMs: ended.busyMs, cloneMs, waitMs: Math.max(0, startedAt - calledAt) };
  }
}
