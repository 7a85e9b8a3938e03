/**
 * Cumulative counters of the time in which the kernel did not let this process run. They only grow, so every reader
 * takes its own differences and none disturbs another; a difference below 0 means that the process was moved to
 * another cgroup and says nothing. Unknown is null.
 */
export interface SchedulingCounters {
  /** CFS periods of the cgroup that holds the CPU limit; null without a visible limit. */
  periods: number | null;
  /** Those of them in which the limit was hit. */
  throttledPeriods: number | null;
  /** Milliseconds throttled by any limit, those of ancestors that cannot be seen included; summed over CPUs. */
  throttledMs: number | null;
  /** Milliseconds the main thread was runnable but not running. */
  runQueueMs: number | null;
}

/**
 * Why a late event loop may be the kernel's doing: the port through which the event loop learns of CPU throttling.
 * A read costs a few microseconds of synchronous kernel files, opens nothing, and never throws.
 */
export interface SchedulingPressure {
  read(): SchedulingCounters;
}
