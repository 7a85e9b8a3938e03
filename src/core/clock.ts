// Node makes the global a getter: each reading would pay for it.
import { performance } from 'node:perf_hooks';

export type MonotonicClock = () => number;

/** The process's own monotonic clock: `performance.now()`, in milliseconds since the process started. */
export const monotonicMs: MonotonicClock = () => performance.now();

/** A wall clock that is further off has been set; below it, time stamps keep the order of the monotonic clock. */
const STEP_MS = 100;
let offsetMs: number = performance.timeOrigin;

/** Epoch milliseconds of a {@link monotonicMs} reading, so that one clock serves durations and time stamps. */
export function toEpochMs(monotonic: number): number {
  const nowMs = Date.now() - performance.now();
  if (Math.abs(nowMs - offsetMs) > STEP_MS) offsetMs = nowMs;
  return offsetMs + monotonic;
}

/** Node's timers cannot count further, and fire at once; milliseconds. */
export const MAX_TIMER_MS = 2_147_483_647;
