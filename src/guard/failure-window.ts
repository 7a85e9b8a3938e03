import type { MonotonicClock } from '../core/clock.js';

const SLOTS = 10;

interface Slot {
  tick: number;
  calls: number;
  failures: number;
}

/** How many calls of the last while have failed. Forgets by time, also while nobody calls. */
export class FailureWindow {
  private readonly slots: Slot[] = Array.from({ length: SLOTS }, () => ({ tick: -SLOTS, calls: 0, failures: 0 }));

  constructor(
    private readonly rule: { readonly ratio: number; readonly atLeast: number; readonly windowMs: number },
    private readonly nowMs: MonotonicClock,
  ) {}

  add(failed: boolean): void {
    const tick = this.tick();
    const slot = this.slots[tick % SLOTS]!;
    if (slot.tick !== tick) Object.assign(slot, { tick, calls: 0, failures: 0 });
    slot.calls += 1;
    if (failed) slot.failures += 1;
  }

  /** Enough calls to tell, and the given share of them failed. */
  get tripped(): boolean {
    const { calls, failures } = this.sums();
    return calls >= this.rule.atLeast && failures >= this.rule.ratio * calls;
  }

  sums(): { calls: number; failures: number } {
    const oldest = this.tick() - SLOTS + 1;
    let [calls, failures] = [0, 0];
    for (const slot of this.slots) {
      if (slot.tick < oldest) continue;
      calls += slot.calls;
      failures += slot.failures;
    }
    return { calls, failures };
  }

  forget(): void {
    for (const slot of this.slots) slot.tick = -SLOTS;
  }

  private tick(): number {
    return Math.floor((this.nowMs() * SLOTS) / this.rule.windowMs);
  }
}
