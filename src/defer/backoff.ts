/** How long to wait after failures: exponential from `baseMs`, never more than `maxMs`. */
export interface Backoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

/**
 * Milliseconds to wait after the given number of failures (from 1), with full jitter: uniform between 0 and the
 * exponential ceiling, so that those who failed together do not come back together.
 */
export function backoffMs(failures: number, { baseMs, maxMs }: Backoff, random: () => number = Math.random): number {
  return random() * Math.min(maxMs, baseMs * 2 ** (failures - 1));
}
