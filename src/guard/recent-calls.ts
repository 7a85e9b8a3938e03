import type { MonotonicClock } from '../core/clock.js';

const SLOTS = 10;

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
