import type { MonotonicClock } from '../core/clock.js';

const SHARE = 0.2;
/** So that an upstream that is rarely asked is tried again at all. */
const FLOOR_PER_SECOND = 1;
const SECONDS = 10;

interface Second {
  at: number;
  calls: number;
  retries: number;
}

/**
 * Retries of the last ten seconds: at most a fifth of the calls, or one a second where that is more. Without a budget retries
 * multiply the load of an upstream that fails under it. https://finagle.github.io/blog/2016/02/08/retry-budgets/
 */
export class RetryBudget {
  private readonly seconds: Second[] = Array.from({ length: SECONDS }, () => ({ at: -SECONDS, calls: 0, retries: 0 }));

  constructor(private readonly nowMs: MonotonicClock) {}

  called(): void {
    this.second().calls += 1;
  }

  /** Takes one retry; false: the budget is spent. */
  take(): boolean {
    const current = this.second();
    let [calls, retries] = [0, 0];
    for (const second of this.seconds) {
      if (second.at <= current.at - SECONDS) continue;
      calls += second.calls;
      retries += second.retries;
    }
    if (retries + 1 > Math.max(SHARE * calls, FLOOR_PER_SECOND * SECONDS)) return false;
    current.retries += 1;
    return true;
  }

  private second(): Second {
    const at = Math.floor(this.nowMs() / 1_000);
    const second = this.seconds[at % SECONDS]!;
    if (second.at !== at) Object.assign(second, { at, calls: 0, retries: 0 });
    return second;
  }
}
