import { pushBounded } from '../core/push-bounded.js';
import { medianOf } from '../core/statistics/median.js';

/** Length of a window. */
export const TREND_WINDOW_MS = 10_000;
/** The last minute. */
const RECENT = 6;
/** It is compared with at least three minutes before it, and at most half an hour. */
const MIN_BEFORE = 18;
const MAX_BEFORE = 180;
/** A window of fewer calls says too little. */
const MIN_CALLS = 10;
/** One-sided, of the standard normal distribution: one in three thousand by chance. */
const Z = 3.4;
/** What is sure may still be too little to matter: a fifth, and ten milliseconds. */
const MIN_RATIO = 1.2;
const MIN_MS = 10;

/** The typical duration of a call, milliseconds: in the half hour before the last minute, and in it. */
export interface Slowdown {
  readonly beforeMs: number;
  readonly nowMs: number;
}

/**
 * Tells whether calls have become slower, by the rank-sum test of Mann and Whitney. A window is one observation: calls of the
 * same seconds resemble each other, and would make chance look sure.
 */
export class CallTrend {
  private count = 0;
  private logSum = 0;
  /** Mean logarithm of the calls of each window, oldest first; null where they were too few. */
  private readonly windows: (number | null)[] = [];

  add(ms: number): void {
    this.count += 1;
    // Microseconds: less is not measured.
    this.logSum += Math.log(Math.max(ms, 0.001));
  }

  /** Ends a window. */
  tick(): void {
    pushBounded(this.windows, this.count < MIN_CALLS ? null : this.logSum / this.count, RECENT + MAX_BEFORE);
    [this.count, this.logSum] = [0, 0];
  }

  /** Null where calls have not become slower for sure, and by much. */
  slowdown(): Slowdown | null {
    const known = (window: number | null): window is number => window !== null;
    const now = this.windows.slice(-RECENT).filter(known);
    const before = this.windows.slice(0, -RECENT).filter(known);
    if (now.length < RECENT || before.length < MIN_BEFORE) return null;
    const nowMs = Math.exp(medianOf(now));
    const beforeMs = Math.exp(medianOf(before));
    const matters = nowMs >= MIN_RATIO * beforeMs && nowMs - beforeMs >= MIN_MS;
    return matters && rankSumZ(now, before) >= Z ? { beforeMs, nowMs } : null;
  }
}

/** How far the first values lie above the others, in standard deviations; continuity-corrected. */
function rankSumZ(values: readonly number[], others: readonly number[]): number {
  let above = 0;
  for (const value of values) {
    for (const other of others) above += value > other ? 1 : value === other ? 0.5 : 0;
  }
  const pairs = values.length * others.length;
  return (above - pairs / 2 - 0.5) / Math.sqrt((pairs * (values.length + others.length + 1)) / 12);
}
