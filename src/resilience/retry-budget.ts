import type { MonotonicClock } from '../core/clock.js';

const SHARE = 0.2;
/** Retries that are always allowed, so that an upstream with few calls is retried at all. */
const FLOOR = 10;
/** Counts fade with this time constant. */
const FADE_MS = 10_000;

/**
 * Retries are at most a fifth of the recent calls, or ten where that is more: without a budget they multiply the load of an upstream
 * that fails under it. https://finagle.github.io/blog/2016/02/08/retry-budgets/
 */
export class RetryBudget {
  private calls = 0;
  private retries = 0;
  private countedMs = 0;

  constructor(private readonly nowMs: MonotonicClock) {}

  called(): void {
    this.fade();
    this.calls += 1;
  }

  /** Takes one retry; false: the budget is spent. */
  take(): boolean {
    this.fade();
    if (this.retries + 1 > Math.max(SHARE * this.calls, FLOOR)) return false;
    this.retries += 1;
    return true;
  }

  private fade(): void {
    const nowMs = this.nowMs();
    const kept = Math.exp((this.countedMs - nowMs) / FADE_MS);
    this.countedMs = nowMs;
    this.calls *= kept;
    this.retries *= kept;
  }
}
