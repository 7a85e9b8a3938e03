import { attach } from './attachment.js';

/** What the kernel did not let this process do in a stretch of time. Unknown is null. */
export interface SchedulingLoss {
  /** Length of the stretch, milliseconds. */
  ms: number;
  /** CFS periods of the cgroup that holds the CPU limit; null without a limit that can be seen. */
  periods: number | null;
  /** Those of them in which the limit was hit. */
  throttledPeriods: number | null;
  /** Milliseconds throttled by any limit, those of ancestors that cannot be seen included; summed over CPUs. */
  throttledMs: number | null;
  /** Milliseconds the main thread was runnable but not running. */
  runQueueMs: number | null;
}

/** The port through which the event loop learns that it was late because the kernel held the process back. */
export interface SchedulingPressure {
  /**
   * What was lost from the last look before `monotonicMs` (at most some seconds earlier, while the loop turns) until now.
   * Null when there was no such look. Costs a few microseconds, disturbs no other reader, never throws.
   */
  since(monotonicMs: number): SchedulingLoss | null;
  /** Milliseconds throttled since the first look, summed over CPUs; null where nothing tells. */
  readonly throttledMs: number | null;
}

/** An application's; there is none while nobody reads what the kernel says. */
export const SCHEDULING = attach<SchedulingPressure>('application');
