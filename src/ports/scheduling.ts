/** For how long a CPU limit has held this process back. Unknown is null. */
export interface SchedulingLoss {
  /** CFS periods in which the limit that can be seen was hit. */
  throttledPeriods: number | null;
  /** By any limit, those of ancestors that cannot be seen included; summed over CPUs. */
  throttledMs: number | null;
}

/** The port through which the event loop learns that it was late because the kernel held the process back. */
export abstract class SchedulingPressure {
  /** Returns the loss since the last reading before `monotonicMs`, some seconds at most; null: none. Never throws. */
  abstract since(monotonicMs: number): SchedulingLoss | null;
  /** Milliseconds throttled since the first look, summed over CPUs; null where nothing tells. */
  abstract readonly throttledMs: number | null;
}
