import { performance } from 'node:perf_hooks';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { notCloneable } from './offload.errors.js';
import { sentError } from './sent-error.js';
import type { ResolvedRunOptions } from './offload.options.js';
import type { OffloadContext, Order, Said, ThreadTask } from './thread-pool.js';
import { isCloneable, movableIn } from './transferables.js';

/** Something to do, wherever it is done. */
export interface Job {
  /** `'Reports.render'` */
  readonly name: string;
  readonly parameters: unknown[];
  readonly options: ResolvedRunOptions;
  /** Nobody of the application's has asked for it. */
  readonly isOwn?: true;
  readonly order: Order;
  /** On this thread. */
  here(): Promise<unknown>;
}

type Ended = Exclude<Said, { said: 'started' }>;

/** One job on its way to a worker and back. */
export class Call {
  /** Epoch milliseconds at which the worker began; null before. */
  startedAt: number | null = null;
  /** What the main thread has spent on arguments and result. */
  cloneMs = 0;
  /** How many threads have ended before they began. */
  attempts = 0;
  /** Its arguments are no longer here. */
  moved = false;
  settled = false;
  readonly calledAt = Date.now();
  private channel = new MessageChannel();
  /** Ends the thread that runs it. */
  stopping = new AbortController();
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
  send(move: boolean): void {
    const { parameters, name } = this.job;
    const startedMs = performance.now();
    const movable = move ? movableIn(parameters) : [];
    try {
      this.channel.port1.postMessage(parameters, movable);
    } catch (error) {
      this.close();
      throw refused(name, parameters, error);
    }
    this.moved = movable.length > 0;
    this.cloneMs += performance.now() - startedMs;
  }

  /** Again, after a thread that never began. */
  sendAgain(): void {
    this.close();
    this.channel = new MessageChannel();
    this.stopping = new AbortController();
    this.outcome = null;
    this.send(false);
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

  /** What the worker has said so far about the end; null while it is at it, and when it was cut off. Never throws. */
  collect(): Ended | null {
    while (this.outcome === null) {
      const startedMs = performance.now();
      const said = this.next();
      if (said === null) return null;
      if (said.said === 'started') this.startedAt = said.at;
      else {
        this.cloneMs += performance.now() - startedMs;
        this.outcome = said;
      }
    }
    return this.outcome;
  }

  private next(): Said | null {
    try {
      return (receiveMessageOnPort(this.channel.port1)?.message as Said | undefined) ?? null;
    } catch (error) {
      // What that thread could send, this one cannot make.
      const lost = sentError(notCloneable(`The result of "${this.job.name}"`, error));
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

function refused(name: string, parameters: readonly unknown[], error: unknown): Error {
  const index = parameters.findIndex((parameter) => !isCloneable(parameter));
  if (index < 0) return notCloneable(`What "${name}" was given`, error);
  return notCloneable(`Argument ${index + 1} of "${name}"`, error, parameters[index]);
}
