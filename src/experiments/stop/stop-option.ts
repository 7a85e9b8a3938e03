import { object, optional, optionError, type Option, type Resolved } from '../../core/option.js';

/** When a gate is switched off by itself: how much worse `on` may be than `off`. */
export interface StopOptions {
  /** Rise of the p95 of successful requests, relative: `'+20 %'`. @default no limit */
  p95?: string;
  /** Rise of the share of requests that end with a status of 500 or more, in percentage points: `'+0.5 %'`. @default no limit */
  errors?: string;
  /** Rise of the event-loop time that a request blocks on average, relative: `'+50 %'`. @default no limit */
  blockedMs?: string;
}

const PERCENT = /^\+\s*(\d+(?:\.\d+)?)\s*%$/;

/** `'+20 %'` is 0.2. */
const rise: Option<number> = {
  expected: "a rise in percent, such as `'+20 %'`",
  read(given, path) {
    const found = typeof given === 'string' ? PERCENT.exec(given.trim()) : null;
    if (found === null) throw optionError(path, this.expected, given);
    return Number(found[1]) / 100;
  },
};

const limits = object({ p95: optional(rise), errors: optional(rise), blockedMs: optional(rise) });

/** Limits as shares; null: none. */
export type StopLimits = Resolved<typeof limits>;

export const stopOption: Option<StopLimits> = {
  expected: limits.expected,
  read(given, path) {
    const read = limits.read(given, path);
    if (Object.values(read).some((limit) => limit !== null)) return read;
    throw optionError(path, 'an object with at least one of `p95`, `errors` and `blockedMs`', given);
  },
};
