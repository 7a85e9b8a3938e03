import type { TimeRange } from '../ports/history.js';
import type { Fleet } from './fleet.js';
import type { HistoryRow } from './rows/row.js';
import type { Tier } from './rows/tiers.js';
import type { EncodedWindow } from './rows/window-codec.js';

/** This run of this process. */
export type Identity = Pick<HistoryRow, 'pod' | 'instance' | 'release'>;

/** A bucket of one process; of a fleet, with `pod` empty. */
export interface ReadBucket extends Identity {
  readonly at: number;
  readonly window: EncodedWindow;
}

/** Reads everything that is known of a range: this process's from memory, its past and others' from the store. */
export interface HistorySource {
  /** Hands on every bucket that begins in the range; false when the store could not be read. Without the store, only this run's. */
  read(tier: Tier, range: TimeRange, take: (bucket: ReadBucket) => void, withStore?: boolean): Promise<boolean>;
  /** Several pods share the store: what is read is all of them. */
  readonly shared?: boolean;
  /** Runs `ask` on the fleet; null while the store is away. */
  fleet?<T>(ask: (fleet: Fleet) => Promise<T>): Promise<T | null>;
}
