import { ascending, boolean, feature, list, string } from '../core/option.js';
import { duration } from '../core/shared-options.js';

/** How requests are measured. */
export interface LatencyOptions {
  /**
   * Completed requests slower than this are logged as warnings, milliseconds. `@SlowMs()` sets it for one route.
   * @default 1000
   */
  slowMs?: number;
  /**
   * Each gets a counter per route of the completed requests that took longer, milliseconds, ascending.
   * @default [1000, 2000, 5000]
   */
  overMs?: readonly number[];
  /**
   * Route patterns that are not measured, as records name them: `['/health', '/internal/*', '/admin/**']`. `*` is any text within
   * a segment, `**` any segments; `/admin/**` is `/admin` and all below it.
   * @default []
   */
  ignore?: readonly string[];
  /**
   * Adds the `Server-Timing` header: how long the server took, and of it `own` work, `up`stream calls and other `wait`.
   * @default false
   */
  serverTiming?: boolean;
}

const pattern = string({ what: 'a route pattern that starts with `/`', test: (value) => value.startsWith('/') });

export const latencyOption = feature({
  slowMs: duration({ default: 1000 }),
  overMs: ascending('milliseconds', { default: [1000, 2000, 5000], least: 0 }),
  ignore: list(pattern, { default: [], what: 'a list of route patterns' }),
  serverTiming: boolean({ default: false }),
});
