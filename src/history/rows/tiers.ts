/**
 * The history is kept in three tiers of buckets: minutes, five minutes, hours. A window is the content of one bucket; a row is what one
 * process has counted in a bucket, as it is stored.
 */
export type Tier = '1m' | '5m' | '1h';

export interface TierRule {
  readonly tier: Tier;
  /** Length of a bucket, milliseconds. */
  readonly stepMs: number;
  /** How long memory keeps its buckets, milliseconds. */
  readonly keepMs: number;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
export const WEEK_MS = 7 * DAY_MS;
/** Verdicts judge windows of five minutes. */
export const WINDOW_MS = 5 * MINUTE_MS;

export const TIERS: readonly TierRule[] = [
  { tier: '1m', stepMs: MINUTE_MS, keepMs: 6 * HOUR_MS },
  { tier: '5m', stepMs: WINDOW_MS, keepMs: 48 * HOUR_MS },
  { tier: '1h', stepMs: HOUR_MS, keepMs: 48 * HOUR_MS },
];

export const findRule = (tier: Tier): TierRule => TIERS.find((rule) => rule.tier === tier)!;

export const startBucket = (atMs: number, stepMs: number): number => Math.floor(atMs / stepMs) * stepMs;

/** How long a store keeps a tier: hours for `keepDays`, the others as memory does. One bucket longer, since a bucket is deleted as a whole. */
export function keptMs(tier: Tier, keepDays: number): number {
  const { keepMs, stepMs } = findRule(tier);
  return (tier === '1h' ? keepDays * DAY_MS : Math.min(keepMs, keepDays * DAY_MS)) + stepMs;
}
