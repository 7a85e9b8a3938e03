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

const name = string({ default: '', what: 'a name', test: (value) => value !== '' });

/** The `eventLoop` row of the option table. */
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
