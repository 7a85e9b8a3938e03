// Not the global, which Node makes a getter: each reading would pay for finding it.
import { performance } from 'node:perf_hooks';

/** Monotonic time in milliseconds, for durations. */
export type MonotonicClock = () => number;

/** The process's own monotonic clock: `performance.now()`, in milliseconds since the process started. */
export const monotonicMs: MonotonicClock = () => performance.now();

/** Epoch milliseconds of a {@link monotonicMs} reading, so that one clock serves durations and time stamps. */
export const epochMsOf = (monotonic: number): number => performance.timeOrigin + monotonic;

/** Node's timers cannot count further, and fire at once; milliseconds. */
export const MAX_TIMER_MS = 2_147_483_647;
