import { boolean, number, object, choice, optional, string, type Resolved } from '../core/option.js';
import { duration, timeout } from '../core/shared-options.js';
import { PerfError } from '../core/perf.error.js';
import type { DeferWorkOptions, EnqueueOptions } from './deferred-work.js';

export const isQueueName = (name: string): boolean => name !== '' && !name.includes(':');

const commonRows = {
  name: optional(string({ what: 'a name', test: (value) => value !== '' })),
  durable: boolean({ default: false }),
  timeoutMs: timeout({ default: 30_000 }),
  attempts: number({ default: 1, unit: 'a whole number of attempts', min: 1, integer: true }),
  queue: optional(string({ what: 'a queue name without `:`', test: isQueueName })),
  backoffMs: timeout({ default: 1_000, min: 0 }),
  maxBackoffMs: timeout({ default: 60_000, min: 0 }),
  batch: object({
    maxItems: number({ default: 500, unit: 'a whole number of items', min: 1, integer: true }),
    maxWaitMs: timeout({ default: 50, min: 0 }),
  }),
};
const table = object({ ...commonRows, when: optional(choice(['success', 'error', 'always'], { default: 'success' })) });
const enqueueTable = object({
  ...commonRows,
  id: optional(string({ what: 'an id', test: (id) => id !== '' && id.length <= 512 })),
  delayMs: duration({ default: 0, min: 0 }),
  // 2^21 - 1: the largest that BullMQ 6 takes.
  priority: number({ default: 0, unit: 'a whole number', min: 0, max: 2_097_151, integer: true }),
});

/** Options of work with every default filled in; null where there is none. */
export interface WorkOptions extends Resolved<typeof table>, Resolved<typeof enqueueTable> {}

/** Reads options of `@DeferWork`, and of `deferrer.defer()` with a function. @throws PERF_ERR_OPTION with `where` in its path */
export function readWorkOptions(options: DeferWorkOptions | undefined, where: string): WorkOptions {
  if (options === undefined) return DEFAULTS;
  return requireDurable({ ...DEFAULTS, ...table.read(options, where) }, where);
}
const DEFAULTS: WorkOptions = { ...enqueueTable.read(undefined, ''), ...table.read(undefined, '') };

/** Reads options of `deferrer.defer()` with a class and of `deferrer.enqueue()`. @throws PERF_ERR_OPTION with `where` in its path */
export const readEnqueueOptions = (options: EnqueueOptions | undefined, where: string): WorkOptions =>
  requireDurable({ when: null, ...enqueueTable.read(options, where) }, where);

const DURABLE_ONLY = {
  queue: 'work of this process has no queue',
  delayMs: 'only a store keeps work for later',
  priority: 'work of this process runs in its order',
};

function requireDurable(read: WorkOptions, where: string): WorkOptions {
  for (const [name, why] of Object.entries(DURABLE_ONLY)) {
    if (read.durable || !read[name as keyof typeof DURABLE_ONLY]) continue;
    throw new PerfError(
      'PERF_ERR_OPTION',
      `\`${where}.${name}\` must go with \`durable: true\`: ${why}. Add \`durable: true\`, or leave \`${name}\` out.`,
    );
  }
  return read;
}
