/** Words of the memory that the event loop shares with its watchdog. Only the loop writes the first three. */
export const SEQ = 0;
/** When the loop last turned, in {@link UNITS_PER_MS}; wraps, so only differences mean something. */
export const BEAT_AT = 1;
export const MODE = 2;
/** How often the watchdog has polled. */
export const POLLS = 3;
/** Microseconds by which the watchdog's own polls came late: it was not scheduled. Wraps. */
export const STARVED_US = 4;
/** Microseconds that the main thread was runnable but not running while it stood still. Wraps; 0 where unknown. */
export const RUN_DELAY_US = 5;
export const WORDS = 8;

/** Values of {@link MODE}. */
export const PARKED = 0;
export const AWAKE = 1;
export const STOPPED = 2;

export const UNITS_PER_MS = 16;

/** A look that waited longer was held up by a native call that lets nobody in. */
export const LATE_MS = 5;
