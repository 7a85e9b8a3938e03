/** How often things happen, milliseconds. All follow from the threshold. */
export interface Timing {
  /** A loop that stood still for less is not reported. */
  readonly thresholdMs: number;
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
/** The watchdog's own polling while no request is in flight. */
export const IDLE_POLL_MS = 250;

/**
 * A fifth of the threshold a tick, two ticks to the first look: a block of twice the threshold is then seen seven times
 * or more. Ticks shorter than 5 ms would cost more than they tell.
 */
export function timingOf(thresholdMs: number): Timing {
  const tickMs = Math.min(50, Math.max(5, thresholdMs / 5));
  return { thresholdMs, tickMs, idleTickMs: Math.max(100, tickMs), suspectMs: 2 * tickMs, sampleMs: tickMs };
}
/** A look that waited longer was held up by a native call that lets nobody in. */
export const LATE_MS = 5;
