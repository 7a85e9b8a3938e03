import { boolean, feature, list, number, string } from '../core/option.js';

/** How event-loop blocks are found and told. */
export interface EventLoopOptions {
  /**
   * A loop that stands still for longer is reported, milliseconds, 20 or more. Lower thresholds need more wake-ups; below
   * 20 there would be too few looks at a block to prove whose it was.
   * @default 50
   */
  thresholdMs?: number;
  /**
   * Name the source line. Off, records have neither `location` nor `stack`.
   * @default true
   */
  stack?: boolean;
  /**
   * A redacted curl line of the blocking request.
   * @default true
   */
  replay?: boolean | ReplayOptions;
  /**
   * Wraps `JSON.parse`, `JSON.stringify` and `structuredClone` of the process, so that blocks in them are proven, not only
   * suspected. Off by default because it changes globals; they are restored on `app.close()`.
   * @default false
   */
  safepoints?: boolean;
}

/** What the curl line may hold. Secret-looking headers, query parameters and JSON fields are redacted whatever is allowed. */
export interface ReplayOptions {
  /**
   * Request headers beside `accept*`, `content-type` and `range`.
   * @default []
   */
  allowHeaders?: readonly string[];
  /**
   * Names of headers, parameters and fields that are secret beside those that look it. Also applies to `url` in records.
   * @default []
   */
  denyNames?: readonly string[];
  /**
   * Longest JSON or form body that is repeated, bytes. 0: no body.
   * @default 0
   */
  maxBodyBytes?: number;
}

const name = string({ what: 'a name', test: (value) => value !== '' });

export const eventLoopOption = feature({
  thresholdMs: number({ default: 50, unit: 'a number of milliseconds', min: 20, max: 60_000 }),
  stack: boolean({ default: true }),
  replay: feature({
    allowHeaders: list(name, { default: [], what: 'a list of header names' }),
    denyNames: list(name, { default: [], what: 'a list of names' }),
    maxBodyBytes: number({ default: 0, unit: 'a number of bytes', min: 0, max: 1_000_000, integer: true }),
  }),
  safepoints: boolean({ default: false }),
});

/** How often things happen. */
export interface Timing {
  readonly thresholdMs: number;
  /** A request that starts or ends so soon after the last beat adds none. A block may look that much longer. */
  readonly beatMs: number;
  /** The loop proves this often that it turns while requests are in flight; no two looks at a block are closer together. */
  readonly tickMs: number;
  /** And this often when there are none: enough to see that background work blocked, at next to no cost. */
  readonly idleTickMs: number;
  /** A loop that has not turned for so long is looked at. */
  readonly suspectMs: number;
  /** On average. A look costs the main thread about half a millisecond, also where it is blocked all the time. */
  readonly looksPerSecond: number;
}

/** Requests must have been absent for so long before the fast tick stops: starting it costs a wake-up of the watchdog. */
export const PARK_AFTER_MS = 1_000;
/** Requests in flight that have begun before this and are alone (open event streams) do not keep the fast tick on. */
export const PARK_QUIET_AFTER_MS = 30_000;
/** Far below a tick, and below what a block's duration is told by. */
const MAX_BEAT_MS = 0.5;
/** A wake-up costs up to 300 µs of a small virtual machine's idle CPU. */
const IDLE_TICK_MS = 500;

/** A block of twice the threshold is looked at for two thirds of its time. Shorter ticks cost more than they tell. */
export function timingOf(thresholdMs: number): Timing {
  const tickMs = Math.min(50, Math.max(5, thresholdMs / 5));
  const suspectMs = Math.max(2 * tickMs, Math.min(thresholdMs / 2, 100));
  const beatMs = Math.min(MAX_BEAT_MS, thresholdMs / 100);
  return { thresholdMs, beatMs, tickMs, idleTickMs: IDLE_TICK_MS, suspectMs, looksPerSecond: 30 };
}
