/** One item of durable work on its way to a worker. Plain JSON. */
export interface DurableJob {
  /** Made here, before the first send; a store must keep only one job of an id. */
  readonly id: string;
  /** The work's name in `@DurableWork()`, by which a worker finds its class. */
  readonly work: string;
  /** The work's name in records and dashboards. */
  readonly name: string;
  readonly data: unknown;
  readonly requestId: string | null;
  /** Pattern of the request's route; null outside of one. */
  readonly route: string | null;
  /** Final status of the response; null for work replayed after a crash. */
  readonly status: number | null;
  readonly timeoutMs: number;
  readonly attempts: number;
  /** When it was prepared, epoch milliseconds. */
  readonly at: number;
  /** W3C trace context of the request; null when there was none. */
  readonly traceparent: string | null;
}

/** How a job is to be stored. */
export interface DurableJobOptions {
  /** Null: the store's own. */
  readonly queue: string | null;
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly delayMs: number;
  /** 0: none; else 1 is the first to run. */
  readonly priority: number;
}

/** A job on its way to a store. */
export interface NewDurableJob extends DurableJob {
  readonly options: DurableJobOptions;
}

/** Whether a process can run a class of work. */
export type WorkKind = 'one' | 'batch';

/** Methods of the application that its store may call. */
export interface DurableStoreHost {
  /**
   * Runs one attempt (from 1) of a job in this process, or of several of one class with `runBatch`, which run, fail and are tried again
   * together. Rejects when it fails, so that the store can try again. `signal` aborts when the store can wait no longer.
   */
  run(jobs: readonly DurableJob[], attempt: number, signal?: AbortSignal): Promise<void>;
  /** For jobs that the store itself has failed for good, without another attempt: they lost too many processes, for example. */
  givenUp?(jobs: readonly DurableJob[], attempt: number, error: Error): void;
  /** How a class runs in this process, by its name; or why it cannot: another process may be newer, or another service. */
  findKind(work: string): WorkKind | { readonly whyNot: string };
  /** Queues beside the store's own that handlers of this application name; known when the worker starts. */
  queues(): readonly string[];
  /** Logs a cause once and counts its repeats. */
  report(cause: string, message: string): void;
}

/**
 * Keeps durable work for its worker: at least once, never "exactly once". `start` must not wait for the server
 * behind it, and a server that is away must make `add` fail, not wait: buffering and repeating is done by the caller.
 */
export interface DurableStore {
  readonly name: string;
  /** Another one of the same options: a store object may be an option of several applications of a process. */
  forApplication?(): DurableStore;
  /** At boot, before modules are initialised: work may be added. A rejection stops the boot: for wrong options and missing packages, not for a server that is away. */
  start(host: DurableStoreHost): Promise<void>;
  /**
   * Resolves when every job is stored; all are of one queue. Called again with the same jobs after a failure, even a partial
   * one. With `batch`, all of them are one job for `runBatch`.
   */
  add(jobs: readonly NewDurableJob[], options: { batch: boolean }): Promise<unknown>;
  /** Every module is initialised: from here on, and not before, jobs run in this process. */
  startWorker?(): void;
  /** The application begins to close, and may still serve requests for long: takes no new work from here on. */
  pauseWorker?(): Promise<void>;
  /** Takes no new work and waits for what runs in this process, at the most `deadlineMs`. */
  stopWorker(deadlineMs: number): Promise<void>;
  close(): Promise<void>;
  /** Options of the spill, which keeps prepared data on disk until it is stored. */
  readonly spill?: SpillOptions | null;
}

export interface SpillOptions {
  /** Path of a folder, which several processes may share. */
  readonly path: string;
  /** Upper limit of the files of durable work, bytes; each process counts its own. */
  readonly maxBytes: number;
  /** How long an answer waits for the disk, milliseconds. @default 5_000 */
  readonly writeTimeoutMs?: number;
}
