import type { MessagePort, Worker } from 'node:worker_threads';

/** What a worker is asked for. Arguments have been sent to `port` already, and `null` after them ends it before it begins; what the worker answers goes there. */
export interface ThreadTask {
  readonly port: MessagePort;
  readonly order: Order;
  /** Of a call. */
  readonly context?: OffloadContext;
}

/** `boot`: its application; `end`: that, and the thread. */
export type Order =
  | { readonly do: 'boot' }
  | { readonly do: 'end' }
  | { readonly do: 'method'; readonly name: string; readonly transfer: boolean }
  | { readonly do: 'file'; readonly name: string; readonly transfer: boolean; readonly file: string };

/** What goes along with a call. */
export interface OffloadContext {
  /** Of the request that has called; null outside of one. */
  readonly requestId: string | null;
  /** W3C trace context of that request. */
  readonly traceparent: string | null;
  /** Gate name to `'on'` or `'off'`, as far as the request has checked them. */
  readonly variants: Readonly<Record<string, string>> | null;
  /** When nobody waits for the result any more; epoch milliseconds. */
  readonly deadlineAt: number;
}

/** What a worker says of one task, in this order. */
export type Said =
  /** The application is up, and the work begins; epoch milliseconds. */
  | { readonly said: 'started'; readonly at: number }
  | { readonly said: 'booted'; readonly methods: readonly string[] }
  | {
      readonly said: 'done';
      readonly value: unknown;
      /** Of an instance in the value, which arrives without it. */
      readonly lostClass: string | null;
      readonly runMs: number;
      readonly busyMs: number;
    }
  | { readonly said: 'failed'; readonly error: SentError; readonly runMs: number; readonly busyMs: number }
  /** There is no application in this worker, which ends. */
  | { readonly said: 'not-booted'; readonly error: SentError };

/** An error on its way to another thread. */
export interface SentError {
  readonly name: string;
  /** Names of its class and of those that it extends, the nearest first. */
  readonly classes: readonly string[];
  readonly message: string;
  readonly stack: string | undefined;
  /** Of an `HttpException`. */
  readonly http: { readonly status: number; readonly response: string | object } | null;
  /** What else stands on it. */
  readonly properties: Readonly<Record<string, SentValue>>;
}

/** A copy of an error has lost its class and what else stands on it: each goes as one. */
export type SentValue =
  | { readonly error: SentError }
  /** With errors in it. */
  | { readonly list: readonly SentValue[] }
  | { readonly value: unknown };

export interface ThreadPoolOptions {
  readonly threads: number;
  readonly heapLimitMb: number | null;
  readonly workerData: Readonly<Record<string, unknown>>;
  /** A thread has ended before it took any task. */
  readonly stillborn: (error: Error) => void;
}

/** Threads that run this library's program for workers, one task at a time each. */
export interface ThreadPool {
  /** Starts a thread where none is free. Rejects when the thread ends; aborted, it ends the thread. */
  run(task: ThreadTask, signal: AbortSignal): Promise<void>;
  readonly threads: readonly Worker[];
  /** Ends every thread at once; resolves when all that ever were have ended. */
  destroy(): Promise<void>;
}

/** How an entry makes one. */
export interface ThreadPools {
  /** The file that threads run; null where there is none, as in this library's own sources. */
  readonly program: URL | null;
  /** @throws PERF_ERR_MISSING_PEER */
  load(): Promise<(options: ThreadPoolOptions) => ThreadPool>;
}
