import type { TimeRange } from '../ports/history.js';
import type { HistoryRow } from './rows/row.js';
import type { Tier } from './rows/tiers.js';

/** What a store is told when it is opened. */
export interface HistoryStoreHost {
  /** For how long rows of a tier are kept, milliseconds. */
  keptMs(tier: Tier): number;
  readonly maxBytes: number;
  /** The application has closed: what is still being opened is not needed any more. */
  readonly signal: AbortSignal;
}

/** A store at work, for one application. */
export interface OpenHistoryStore {
  /**
   * Keeps `finished` for good, and `running` until the next write replaces it; all of them are there when it resolves. Rows that
   * come again, after a write that failed, are kept once.
   */
  write(finished: readonly HistoryRow[], running: readonly HistoryRow[]): Promise<void>;
  /** Rows of buckets that begin in the range, of every process, in any order. */
  read(tier: Tier, range: TimeRange): AsyncIterable<HistoryRow>;
  close(): Promise<void>;
}

/** Where the history is kept beyond the process: `fileHistory()`, `redisHistory()`. */
export interface HistoryStore {
  readonly name: string;
  /** Several processes write to it. */
  readonly shared: boolean;
  /** At boot: loads a package that it needs. What it throws stops the boot. */
  load?(): Promise<void>;
  /** May be called again after it has failed, and in several applications. */
  open(host: HistoryStoreHost): Promise<OpenHistoryStore>;
}
