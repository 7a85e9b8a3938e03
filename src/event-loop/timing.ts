/** How often things happen, milliseconds. All follow from the threshold. */
export interface Timing {
  /** A loop that stood still for less is not reported. */
  readonly thresholdMs: number;
  /**
   * A request that starts or ends so soon after the last proof that the loop turns adds none: a busy server would write two a
   * request. A block may look that much longer than it was.
   */
  readonly beatMs: number;
  /** The loop proves this often that it turns while requests are in flight. */
  readonly tickMs: number;
  /** And this often when there are none: enough to see that background work blocked, at next to no cost. */
  readonly idleTickMs: number;
  /** A loop that has not turned for so long is looked at. */
  readonly suspectMs: number;
  /** Shortest time between two looks at one block. */
  readonly sampleMs: number;
}

/** Requests must have been absent for so long before the fast tick stops: arming it costs a wake-up of the watchdog. */
export const DISARM_AFTER_MS = 1_000;
/** Requests in flight that have begun before this and are alone (open event streams) do not keep the fast tick on. */
export const DISARM_QUIET_AFTER_MS = 30_000;
/** The watchdog's own polling while no request is in flight. */
export const IDLE_POLL_MS = 1_000;
/** Far below a tick, and below what a block's duration is told by. */
const MAX_BEAT_MS = 0.5;
/** A wake-up costs up to 300 µs of a small virtual machine's idle CPU. */
const IDLE_TICK_MS = 500;

/**
 * A fifth of the threshold a tick, half of it to the first look: a block of twice the threshold is then looked at for
 * two thirds of its time. Ticks shorter than 5 ms would cost more than they tell.
 */
export function timingOf(thresholdMs: number): Timing {
  const tickMs = Math.min(50, Math.max(5, thresholdMs / 5));
  const suspectMs = Math.max(2 * tickMs, Math.min(thresholdMs / 2, 100));
  return {
    thresholdMs,
    beatMs: Math.min(MAX_BEAT_MS, thresholdMs / 100),
    tickMs,
    idleTickMs: IDLE_TICK_MS,
    suspectMs,
    sampleMs: tickMs,
  };
}
/** A look that waited longer was held up by a native call that lets nobody in. */
export const LATE_MS = 5;
