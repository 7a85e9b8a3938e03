import { feature, number, type Resolved } from '../core/option.js';
import { timeout } from '../core/shared-options.js';

/** When calls to an upstream are refused for a while. */
export interface BreakerOptions {
  /**
   * Share of the attempts in the window, calls and their retries, that must have failed.
   * @default 0.5
   */
  ratio?: number;
  /**
   * Attempts in the window below which it never opens.
   * @default 20
   */
  atLeast?: number;
  /**
   * The window, milliseconds.
   * @default 30000
   */
  windowMs?: number;
  /**
   * Time for which it stays open until calls try the upstream again, milliseconds.
   * @default 5000
   */
  openMs?: number;
  /**
   * Calls that try it then, at most so many at once. When all have succeeded it closes; the first that fails opens it again.
   * @default 5
   */
  probes?: number;
}

export const breakerOption = feature({
  ratio: number({ default: 0.5, unit: 'a share of all calls', max: 1 }),
  atLeast: number({ default: 20, unit: 'a number of calls', integer: true, min: 1 }),
  windowMs: timeout({ default: 30_000 }),
  openMs: timeout({ default: 5_000 }),
  probes: number({ default: 5, unit: 'a number of calls', integer: true, min: 1 }),
});
export type ResolvedBreaker = NonNullable<Resolved<typeof breakerOption>>;
