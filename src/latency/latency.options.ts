import { boolean, feature, list, number, optionError, string, type Option } from '../core/option.js';

/** How requests are measured. */
export interface LatencyOptions {
  /**
   * Completed requests slower than this are logged as warnings, milliseconds. `@SlowMs()` says it for one route.
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

const milliseconds = number({ default: 0, unit: 'a number of milliseconds' });

const bounds = list(milliseconds, { default: [1000, 2000, 5000], what: 'a list of milliseconds, ascending' });
const ascending: Option<readonly number[]> = {
  expected: bounds.expected,
  read(value, path) {
    const read = bounds.read(value, path);
    if (read.some((ms, index) => index > 0 && ms <= read[index - 1]!)) throw optionError(path, bounds.expected, value);
    return read;
  },
};

const pattern = string({
  default: '',
  what: 'a route pattern that starts with `/`',
  test: (value) => value.startsWith('/'),
});

/** The `latency` row of the option table. */
export const latencyOption = feature({
  slowMs: number({ default: 1000, unit: 'a number of milliseconds' }),
  overMs: ascending,
  ignore: list(pattern, { default: [], what: 'a list of route patterns' }),
  serverTiming: boolean({ default: false }),
});
