import type { MessagePort } from 'node:worker_threads';
import type { PoolRules } from './offload.options.js';

/** One order for a worker. Its arguments are in `port` already; answers go there. */
export interface ThreadTask {
  readonly port: MessagePort;
  readonly order: Order;
  /** The caller waits until then, epoch milliseconds. */
  readonly deadlineAt: number;
}

export type Order =
  /** Imports the module's file. */
  | { readonly do: 'load'; readonly thenEnds: boolean }
  /** Starts the worker's application. */
  | { readonly do: 'boot' }
  | { readonly do: 'method'; readonly name: string; readonly transfer: boolean }
  | { readonly do: 'file'; readonly name: string; readonly transfer: boolean; readonly file: string };

/** Answers of a worker to one task, in this order. */
export type Said =
  /** The work begins; epoch milliseconds. `threadId`: null for work that needs no application. */
  | { readonly said: 'started'; readonly at: number; readonly threadId: number | null }
  | { readonly said: 'done'; readonly value: unknown; readonly runMs: number; readonly busyMs: number }
  | { readonly said: 'failed'; readonly error: SentError; readonly runMs: number; readonly busyMs: number }
  /** The worker has no application, and ends. */
  | { readonly said: 'not-booted'; readonly error: SentError };

/** An error on its way to another thread. */
export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | number | undefined;
  readonly status?: number | undefined;
  /** Nest answers with the error's status where this is true. */
  readonly expose?: boolean | undefined;
  /** The response of an `HttpException`. */
  readonly response?: string | object | undefined;
}

export interface ThreadPoolOptions extends PoolRules {
  /** A thread without a task for so long is ended, milliseconds. */
  readonly idleMs: number;
  readonly heapLimitMb: number | null;
  readonly workerData: Readonly<Record<string, unknown>>;
}

/** The used part of a Piscina: threads that run this library's program for workers, one task at a time each. */
export interface ThreadPool {
  readonly threads: readonly { readonly threadId: number }[];
  /** Rejects when the thread ends. `signal` ends it, or takes the task back before it has a thread. */
  run(task: ThreadTask, options: { transferList: MessagePort[]; signal: AbortSignal }): Promise<unknown>;
  /** A thread has ended without a task. */
  on(event: 'error', listener: (error: Error) => void): unknown;
  /** Ends every thread. */
  destroy(): Promise<void>;
}

/** The entry's part in a pool. */
export interface ThreadPools {
  /** The file that threads run; null in this library's own sources. */
  readonly program: URL | null;
  /** @throws PERF_ERR_MISSING_PEER */
  load(): Promise<(options: ThreadPoolOptions) => ThreadPool>;
}
