import type { MonotonicClock } from '../core/clock.js';

const SLOTS = 10;
/** Of the budget of retries. */
const BUDGET_MS = 10_000;
const SHARE = 0.2;
/** One a second, so that an upstream that is rarely asked is tried again at all. */
const FLOOR = 10;

interface Slot {
  tick: number;
  calls: number;
  marked: number;
}

/** Calls of the last while, and those of them that are marked. Forgets by time, also while nobody calls. */
export class RecentCalls {
  private readonly slots: Slot[] = Array.from({ length: SLOTS }, () => ({ tick: -SLOTS, calls: 0, marked: 0 }));

  constructor(
    private readonly windowMs: number,
    private readonly nowMs: MonotonicClock,
  ) {}

  add(calls: number, marked: number): void {
    const tick = this.tick();
    const slot = this.slots[tick % SLOTS]!;
    if (slot.tick !== tick) Object.assign(slot, { tick, calls: 0, marked: 0 });
    slot.calls += calls;
    slot.marked += marked;
  }

  sums(): { calls: number; marked: number } {
    const oldest = this.tick() - SLOTS + 1;
    let [calls, marked] = [0, 0];
    for (const slot of this.slots) {
      if (slot.tick < oldest) continue;
      calls += slot.calls;
      marked += slot.marked;
    }
    return { calls, marked };
  }

  forget(): void {
    for (const slot of this.slots) slot.tick = -SLOTS;
  }

  private tick(): number {
    return Math.floor((this.nowMs() * SLOTS) / this.windowMs);
  }
}

/**
 * Retries of the last ten seconds: at most a fifth of the calls, or one a second where that is more. Without a budget retries
 * multiply the load of an upstream that fails under it. https://finagle.github.io/blog/2016/02/08/retry-budgets/
 */
export class RetryBudget {
  private readonly recent: RecentCalls;

  constructor(nowMs: MonotonicClock) {
    this.recent = new RecentCalls(BUDGET_MS, nowMs);
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
