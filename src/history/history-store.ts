import type { TimeRange } from '../ports/history.js';
import type { Fleet } from './fleet.js';
import type { HistoryRow } from './rows/row.js';
import type { Tier } from './rows/tiers.js';

/** The limits that a store gets when it is opened. */
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
   * come again, after a write that failed, are kept once. A shared store gets parts of minutes, and adds them up.
   */
  write(finished: readonly HistoryRow[], running: readonly HistoryRow[]): Promise<void>;
  /** Rows of buckets that begin in the range, in any order; those of one bucket add up. */
  read(tier: Tier, range: TimeRange): AsyncIterable<HistoryRow>;
  /** With a shared store: the exchange among its pods. */
  readonly fleet?: Fleet;
  close(): Promise<void>;
}

/** A place for the history beyond the process: `fileHistory()`, `redisHistory()`. */
export interface HistoryStore {
  readonly name: string;
  /** Several processes write to it, and their counts are added: what is read is all of them. */
  readonly shared: boolean;
  /** At boot: loads a package that it needs. What it throws stops the boot. */
  load?(): Promise<void>;
  /** May be called again after it has failed, and in several applications. */
  open(host: HistoryStoreHost): Promise<OpenHistoryStore>;
}
