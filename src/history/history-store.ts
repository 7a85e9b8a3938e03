import type { Verdict } from '../core/verdict.js';
import type { PodMinute, TimeRange } from '../ports/history.js';
import type { EncodedWindow } from './rows/encoded-window.js';
import type { HistoryRow } from './rows/row.js';
import type { Tier } from './rows/tiers.js';

/** The limits that a store gets when it is opened. */
export interface HistoryStoreHost {
  /** For how long rows of a tier are kept, milliseconds. */
  keptMs(tier: Tier): number;
  readonly maxBytes: number;
}

/** A store that was opened for one application. */
export interface OpenHistoryStore {
  /**
   * Resolves when all rows are stored: `finished` for good, `running` until the next write. Rows that are written again after a failed
   * write must count once. A shared store gets parts of minutes, and adds them up.
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
  /** Several processes write to it, and it returns their counts added up. */
  readonly shared: boolean;
  /** Called at boot, to load a package that it needs. An error stops the boot. */
  load?(): Promise<void>;
  /** May be called again after it has failed, and in several applications. */
  open(host: HistoryStoreHost): Promise<OpenHistoryStore>;
}

/** Verdicts of the fleet. Windows before `judgedUntil` were judged for them, epoch milliseconds. */
export interface FleetVerdicts {
  readonly judgedUntil: number;
  readonly verdicts: readonly Verdict[];
}

/** The exchange among pods of one shared store. Each call may reject; the next minute tries again. */
export interface Fleet {
  /**
   * The process with the lease leads: it judges for all. Only a call with `canRead` takes or renews the lease, so that a leader that
   * cannot read the store loses it. `kept` is null before the first verdicts were kept.
   */
  lead(canRead: boolean): Promise<{ readonly leads: boolean; readonly kept: FleetVerdicts | null }>;
  /** False, with nothing kept, when another process leads by now. */
  keepVerdicts(verdicts: FleetVerdicts): Promise<boolean>;
  /** Publishes this pod's last minute, and its part of each window that has ended. */
  publish(minute: PodMinute, windows: readonly HistoryRow[]): Promise<void>;
  /** The last minute of every living pod. */
  pods(): Promise<readonly PodMinute[]>;
  /** Each pod's part of the window that begins at `at`, without distributions; for a quarter of an hour. */
  windows(at: number): Promise<readonly HistoryRow[]>;
}

/** This run of this process. */
export type Identity = Pick<HistoryRow, 'pod' | 'instance' | 'release'>;

/** A bucket of one process; or of all pods, with an empty `pod`. */
export interface ReadBucket extends Identity {
  readonly at: number;
  readonly window: EncodedWindow;
}

export type TakeBucket = (bucket: ReadBucket) => void;

/** Reads a range: buckets of this process from memory, of its past and of other processes from the store. */
export interface HistorySource {
  /**
   * Passes every bucket that begins in the range to the function that `begin` returns; without the store, only this process's. If the
   * store fails midway, it calls `begin` again and starts over from memory, and resolves with false.
   */
  read(tier: Tier, range: TimeRange, begin: () => TakeBucket, withStore?: boolean): Promise<boolean>;
}

export interface FleetSource extends HistorySource {
  /** The store returns the counts of several pods added up. */
  readonly shared: boolean;
  /** Runs `work` on the fleet of a shared store; null without one, and while it is away. */
  fleet<T>(work: (fleet: Fleet) => Promise<T>): Promise<T | null>;
}
