import { feature, boolean, number, optional, value, type Resolved } from '../core/option.js';
import { bytes } from '../core/shared-options.js';
import type { HistoryStore } from './history-store.js';

/** Past metrics, and whether they got worse. */
export interface HistoryOptions {
  /**
   * The store beyond the process: `fileHistory()`, or `redisHistory()` for all pods together.
   * @default none: minutes for 6 hours and five minutes for 48 hours, in memory
   */
  store?: HistoryStore;
  /**
   * Days for which a store keeps hours.
   * @default 35
   */
  keepDays?: number;
  /**
   * Bytes in memory, and again on disk with `fileHistory()`: what is oldest goes first. Redis forgets by age alone.
   * @default 67_108_864
   */
  maxBytes?: number;
  /**
   * Whether changes for the worse or the better are reported: in the log, to sinks, by `PerfService.verdicts()`.
   * @default true
   */
  verdicts?: boolean;
}

const store = value<HistoryStore>('a history store, as `fileHistory()` makes one', (given) => {
  const candidate = given as Partial<HistoryStore> | null;
  return typeof candidate === 'object' && typeof candidate?.name === 'string' && typeof candidate.open === 'function';
});

export const historyOption = feature({
  store: optional(store),
  keepDays: number({ default: 35, unit: 'a number of days', max: 400 }),
  maxBytes: bytes({ default: 64 * 1024 * 1024 }),
  verdicts: boolean({ default: true }),
});

export type ResolvedHistory = NonNullable<Resolved<typeof historyOption>>;
