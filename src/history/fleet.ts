import type { Verdict } from '../core/verdict.js';
import type { PodMinute } from '../ports/history.js';
import type { HistoryRow } from './rows/row.js';

/** Verdicts of the fleet, and until when its windows were judged for them; epoch milliseconds. */
export interface FleetVerdicts {
  readonly judgedUntil: number;
  readonly verdicts: readonly Verdict[];
}

/** The exchange among pods of one shared store. Each call may reject; the next minute tries again. */
export interface Fleet {
  /** Whether this process leads: one does, by a lease that each minute renews. It judges for all, and tidies up. */
  lead(): Promise<boolean>;
  /** Null where nobody has judged yet. */
  verdicts(): Promise<FleetVerdicts | null>;
  /** False where another process leads by now: then nothing is kept. */
  keepVerdicts(verdicts: FleetVerdicts): Promise<boolean>;
  /** How this pod's last minute was, and its own part of five minutes that have ended. */
  publish(minute: PodMinute, windows: readonly HistoryRow[]): Promise<void>;
  /** The last minute of every living pod. */
  pods(): Promise<readonly PodMinute[]>;
  /** Each pod's own part of the five minutes that begin at `at`, for a quarter of an hour: sums without distributions. */
  windows(at: number): Promise<readonly HistoryRow[]>;
  /** The leader's work once a minute. */
  tidy(nowMs: number): Promise<void>;
}
