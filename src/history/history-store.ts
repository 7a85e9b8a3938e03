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

/** Verdicts of the fleet, and until when its windows were judged for them; epoch milliseconds. */
export interface FleetVerdicts {
  readonly judgedUntil: number;
  readonly verdicts: readonly Verdict[];
}

/** The exchange among pods of one shared store. Each call may reject; the next minute tries again. */
export interface Fleet {
  /**
   * One process leads, by a lease: it judges for all. `canRead`: whether this call takes or renews the lease; a leader that cannot
   * read lets it end. `kept` is null where nobody has judged yet.
   */
  lead(canRead: boolean): Promise<{ readonly leads: boolean; readonly kept: FleetVerdicts | null }>;
  /** False where another process leads by now: then nothing is kept. */
  keepVerdicts(verdicts: FleetVerdicts): Promise<boolean>;
  /** Publishes this pod's last minute, and its own part of five minutes that have ended. */
  publish(minute: PodMinute, windows: readonly HistoryRow[]): Promise<void>;
  /** The last minute of every living pod. */
  pods(): Promise<readonly PodMinute[]>;
  /** Each pod's own part of the five minutes that begin at `at`, for a quarter of an hour: sums without distributions. */
  windows(at: number): Promise<readonly HistoryRow[]>;
}

/** This run of this process. */
export type Identity = Pick<HistoryRow, 'pod' | 'instance' | 'release'>;

/** A bucket of one process; of a fleet, with `pod` empty. */
export interface ReadBucket extends Identity {
  readonly at: number;
  readonly window: EncodedWindow;
}

export type TakeBucket = (bucket: ReadBucket) => void;

/** Reads everything that is known of a range: this process's from memory, its past and others' from the store. */
export interface HistorySource {
  /**
   * Hands on every bucket that begins in the range; false when the store could not be read. Without the store, only this run's.
   * `begin` is called again, with all that was taken void, where the store fails midway.
   */
  read(tier: Tier, range: TimeRange, begin: () => TakeBucket, withStore?: boolean): Promise<boolean>;
}

export interface FleetSource extends HistorySource {
  /** Several pods share the store: what is read is all of them. */
  readonly shared: boolean;
  /** Runs `work` on the fleet of a shared store; null without one, and while it is away. */
  fleet<T>(work: (fleet: Fleet) => Promise<T>): Promise<T | null>;
}
