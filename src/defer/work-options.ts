import { MAX_TIMER_MS } from '../core/clock.js';
import { boolean, number, object, oneOf, optional, string } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import type { DeferWhen, DeferWorkOptions } from './deferred-work.js';

/** {@link DeferWorkOptions} with every default filled in. */
export interface WorkOptions {
  /** Null: named after the class, function or handler. */
  readonly name: string | null;
  /** Null: the default, `'success'`. */
  readonly when: DeferWhen | null;
  readonly durable: boolean;
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly envelope: boolean;
}

const nonEmpty = string({ default: '', what: 'a name', test: (value) => value !== '' });

const table = object({
  name: optional(nonEmpty),
  when: optional(oneOf(['success', 'error', 'always'], { default: 'success' })),
  durable: boolean({ default: false }),
  // setTimeout cannot count further than 2^31 - 1 ms.
  timeoutMs: number({ default: 30_000, unit: 'a number of milliseconds', max: MAX_TIMER_MS }),
  attempts: number({ default: 1, unit: 'a whole number of attempts', min: 1, integer: true }),
  envelope: boolean({ default: false }),
});

const DEFAULTS: WorkOptions = table.read(undefined, '');

/**
 * Checks the options and fills in the defaults.
 * @throws PERF_ERR_OPTION with `where` in its path
 */
export function readWorkOptions(options: DeferWorkOptions | undefined, where: string): WorkOptions {
  if (options === undefined) return DEFAULTS;
  const read = table.read(options, where);
  if (read.envelope && !read.durable) {
    throw new PerfError(
      'PERF_ERR_OPTION',
      `\`${where}.envelope\` must go with \`durable: true\`: envelopes are a way to store work. Add \`durable: true\`, or leave \`envelope\` out.`,
    );
  }
  return read;
}
