import type { MessagePort } from 'node:worker_threads';
import type { PoolOptions } from './offload.options.js';
import type { SentError } from './sent-error.js';

/** One task for a worker. Its arguments are in `port` already; replies go there. */
export interface ThreadTask {
  /** Loads the module's file; starts the application; calls one of its methods; calls the default export of a file. */
  readonly do: 'load' | 'boot' | 'method' | 'file';
  readonly name: string;
  /** The workers' module, or the file to call. */
  readonly file: string;
  readonly transfer: boolean;
  /** The caller waits until then, epoch milliseconds. */
  readonly deadlineAt: number;
  readonly port: MessagePort;
}

/** Replies of a worker to one task, in this order. A failure before the start: the worker has no application, and ends. */
export type Reply =
  /** Epoch milliseconds. `threadId`: null in a thread without an application. */
  | { readonly said: 'started'; readonly at: number; readonly threadId: number | null }
  | { readonly said: 'done'; readonly value: unknown; readonly runMs: number; readonly busyMs: number }
  | { readonly said: 'failed'; readonly error: SentError; readonly runMs: number; readonly busyMs: number };

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
  load(): Promise<(options: PoolOptions, workerData: object) => ThreadPool>;
}
