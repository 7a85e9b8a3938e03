/** One item of durable work on its way to a worker. Plain JSON. */
export interface DurableJob {
  /** Made here, before the first send; a store must keep only one job of an id. */
  readonly id: string;
  /** Class name of the work, which the worker looks up among its providers. */
  readonly work: string;
  /** The work's name in records and dashboards. */
  readonly name: string;
  /** Undefined also on the way to a store with {@link DurableStore.readsJson}. */
  readonly data: unknown;
  /** `data` as JSON, on the way to a store; undefined where `data` is. */
  readonly json?: string | undefined;
  readonly requestId: string | null;
  /** Final status of the response; null for work replayed after a crash. */
  readonly status: number | null;
  readonly timeoutMs: number;
  readonly attempts: number;
  /** When it was prepared, epoch milliseconds. */
  readonly at: number;
}

/** What a store may ask of the application that it works for. */
export interface DurableStoreHost {
  /**
   * Runs one attempt (from 1) of a job's class in this process. Rejects when it fails, so that the store can try again.
   * `signal` aborts when the store must stop.
   */
  run(job: DurableJob, attempt: number): Promise<void>;
  /** Says a cause once and counts the rest. */
  report(cause: string, message: string): void;
}

/**
 * Where durable work waits for its worker: at least once, never "exactly once". `start` must not wait for the server
 * behind it, and a server that is away must make `add` fail, not wait: buffering and repeating is done by the caller.
 */
export interface DurableStore {
  readonly name: string;
  /** `add` reads each job's `json` rather than its `data`, which is then not parsed. @default false */
  readonly readsJson?: boolean;
  /** At boot. A rejection stops the boot: for wrong options and missing packages, not for a server that is away. */
  start(host: DurableStoreHost): Promise<void>;
  /**
   * Resolves when every job is stored. Called again with the same jobs after a failure, even a partial one.
   * With `envelope`, all of them may travel as one; the worker must acknowledge each.
   */
  add(jobs: readonly DurableJob[], options: { envelope: boolean }): Promise<unknown>;
  /** Takes no new work and waits for what runs in this process, at the most `deadlineMs`. */
  stopWorker(deadlineMs: number): Promise<void>;
  close(): Promise<void>;
  /** Keeps prepared data on disk until it is stored. */
  readonly journal?: DurableJournal | null;
}

/** A {@link DurableJob} as the journal keeps it: with its envelope flag, its data still text. */
export interface JournalEntry extends Omit<DurableJob, 'data' | 'json' | 'status'> {
  readonly envelope: boolean;
  /** JSON, or undefined. */
  readonly json: string | undefined;
}

/** Disk before the response: what was prepared and is not stored yet. Never rejects but in `open`. */
export interface DurableJournal {
  /** @returns how many entries an earlier process left behind */
  open(report: (cause: string, message: string) => void): Promise<number>;
  /** Resolves when the entry is on disk, with true; false (and a report) when the disk refuses it. */
  append(entry: JournalEntry): Promise<boolean>;
  /** Forgets entries: they are stored, or need not run. */
  strike(ids: readonly string[]): void;
  /** Keeps an entry on disk only, since memory is full. */
  park(id: string): void;
  /** How many are on disk only. */
  readonly parked: number;
  /** Brings up to `limit` parked entries back, oldest first. */
  takeParked(limit: number): Promise<JournalEntry[]>;
  close(): Promise<void>;
}
