import { boolean, feature, list, optional, optionError, string, type Option, type Resolved } from '../core/option.js';
import { bodyBytes, duration, headerName, port, secretName } from '../core/shared-options.js';
import type { LivenessOptions } from './liveness.thread.js';

/** How event-loop blocks are found and reported. */
export interface EventLoopOptions {
  /**
   * A loop that does not turn for longer is reported, milliseconds, 20 or more. Lower thresholds need more wake-ups; below
   * 20 there would be too few samples of a block to attribute it.
   * @default 50
   */
  thresholdMs?: number;
  /**
   * Name the source line. Off, records have no `location`, `stack` and `method`, and a hang is not written to stderr.
   * @default true
   */
  stack?: boolean;
  /**
   * A redacted curl line of the blocking request.
   * @default true
   */
  replay?: boolean | ReplayOptions;
  /**
   * Shares of the loop and own CPU by route, and stacks, from about 20 samples of the main thread a second while requests are in
   * flight. Off, samples are taken in blocks only.
   * @default true
   */
  profile?: boolean;
  /**
   * `GET /live` and `GET /metrics` on a port of their own, from a thread that answers while the event loop is stuck. `/live` has
   * the time since the loop last turned, and the route, method and line that block it.
   * @default none
   */
  port?: number;
  /**
   * The address that the port is on. Probes of Kubernetes need `'0.0.0.0'`; whoever reaches it can read routes and lines.
   * @default '127.0.0.1'
   */
  host?: string;
  /**
   * `/live` answers 503 once the loop has not turned for so long, milliseconds, 100 or more. Below, a blocked loop is alive.
   * @default 30000
   */
  wedgedMs?: number;
}

/** Contents of the curl line. Secret-looking headers, query parameters and JSON fields are redacted whatever is allowed. */
export interface ReplayOptions {
  /**
   * Request headers beside `accept*`, `content-type` and `range`.
   * @default []
   */
  allowHeaders?: readonly string[];
  /**
   * Names of headers, parameters and fields that are secret beside the built-in ones. Also applies to `url` in records.
   * @default []
   */
  denyNames?: readonly string[];
  /**
   * Longest JSON or form body that is repeated, bytes. 0: no body.
   * @default 0
   */
  maxBodyBytes?: number;
}

const HOST = '127.0.0.1';
const WEDGED_MS = 30_000;
const WITHOUT_PORT = 'Nothing listens without it: add `port`, for example `port: 9465`.';

const rows = feature({
  thresholdMs: duration({ default: 50, min: 20, max: 60_000 }),
  stack: boolean({ default: true }),
  replay: feature({
    allowHeaders: list(headerName, { default: [], what: 'a list of header names' }),
    denyNames: list(secretName, { default: [], what: 'a list of names' }),
    maxBodyBytes: bodyBytes,
  }),
  profile: boolean({ default: true }),
  port,
  host: optional(string({ what: 'an address to listen on', test: (value) => value !== '' })),
  wedgedMs: optional(duration({ min: 100, max: 3_600_000 })),
});

type Rows = NonNullable<Resolved<typeof rows>>;
export interface EventLoopSettings extends Omit<Rows, 'port' | 'host' | 'wedgedMs'> {
  /** Null without `port`. */
  readonly liveness: LivenessOptions | null;
}

export const eventLoopOption: Option<EventLoopSettings | null> = {
  expected: rows.expected,
  read(given, path) {
    const read = rows.read(given, path);
    if (read === null) return null;
    const { port: witnessPort, host, wedgedMs, ...settings } = read;
    for (const [name, value] of Object.entries({ host, wedgedMs }))
      if (value !== null && witnessPort === null)
        throw optionError(`${path}.${name}`, 'given together with `port`', value, WITHOUT_PORT);
    const liveness =
      witnessPort === null ? null : { port: witnessPort, host: host ?? HOST, wedgedMs: wedgedMs ?? WEDGED_MS };
    return Object.freeze({ ...settings, liveness });
  },
};

/** How often the loop beats, and when the sampler's thread acts on a beat that is late. */
export interface Timing {
  readonly thresholdMs: number;
  /** A request that starts or ends so soon after the last beat adds none. A block may appear that much longer. */
  readonly beatMs: number;
  /** The timer's beats while requests arrive, and while none do. */
  readonly tickMs: number;
  readonly idleTickMs: number;
  /** A beat that is so late starts the samples of a possible block. */
  readonly suspectMs: number;
  /** The first interval between samples of a block; it grows with the block. */
  readonly blockedSampleMs: number;
}

/** Requests must have been absent for so long before the fast tick stops: starting it costs a wake-up of the sampler. */
export const PARK_AFTER_MS = 1_000;
/** The fast tick also stops when for so long no request has begun or ended: those in flight are open event streams. */
export const PARK_QUIET_AFTER_MS = 30_000;
export const SAMPLES_PER_SECOND = 20;
/** Far below a tick, and below the precision of a block's duration. */
const MAX_BEAT_MS = 0.5;
/** A wake-up costs up to 300 µs of a small virtual machine's idle CPU. */
const IDLE_TICK_MS = 500;

/** A block of twice the threshold is sampled for two thirds of its time. Shorter ticks cost more than they show. */
export function planTiming(thresholdMs: number): Timing {
  const tickMs = Math.min(50, Math.max(5, thresholdMs / 5));
  const beatMs = Math.min(MAX_BEAT_MS, thresholdMs / 100);
  return {
    thresholdMs,
    beatMs,
    tickMs,
    idleTickMs: IDLE_TICK_MS,
    suspectMs: 3 * tickMs,
    blockedSampleMs: Math.min(tickMs, 10),
  };
}
