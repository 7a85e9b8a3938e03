/** Time for which a CPU limit has throttled this process. Unknown is null. */
export interface SchedulingLoss {
  /** CFS periods in which the limit that can be seen was hit. */
  throttledPeriods: number | null;
  /** By any limit, those of ancestors that cannot be seen included; summed over CPUs. */
  throttledMs: number | null;
}

/** Whether the kernel throttled the process, for blocks of the event loop. */
export abstract class SchedulingPressure {
  /** Returns the loss since the last reading before `monotonicMs`, some seconds at most; null: none. Never throws. */
  abstract since(monotonicMs: number): SchedulingLoss | null;
  /** Milliseconds throttled since the first reading, summed over CPUs; null where it is unknown. */
  abstract readonly throttledMs: number | null;
}
