import type { MonotonicClock } from '../core/clock.js';
import { RecentCalls } from './recent-calls.js';

const WINDOW_MS = 10_000;
const SHARE = 0.2;
/** One a second, so that an upstream that is rarely asked is tried again at all. */
const FLOOR = 10;

/**
 * Retries of the last ten seconds: at most a fifth of the calls, or one a second where that is more. Without a budget retries
 * multiply the load of an upstream that fails under it. https://finagle.github.io/blog/2016/02/08/retry-budgets/
 */
export class RetryBudget {
  private readonly recent: RecentCalls;

  constructor(nowMs: MonotonicClock) {
    this.recent = new RecentCalls(WINDOW_MS, nowMs);
  }

  called(): void {
    this.recent.add(1, 0);
  }

  /** Takes one retry; false: the budget is spent. */
  take(): boolean {
    const { calls, marked: retries } = this.recent.sums();
    if (retries + 1 > Math.max(SHARE * calls, FLOOR)) return false;
    this.recent.add(0, 1);
    return true;
  }
}
