import { feature, number, object, choice, optional, value, type Resolved } from '../core/option.js';
import { bytes, timeout } from '../core/shared-options.js';
import type { DurableStore } from './durable/durable-store.js';

/** Policy for new work when `maxPending` is reached. */
export type DeferOverflow = 'drop-new' | 'drop-old' | 'reject';

/** How work runs after the response. */
export interface DeferOptions {
  /** How many tasks run at a time in this process. @default 64 */
  concurrency?: number;
  /**
   * How many tasks may wait in this process, and as many again for each queue and for the store: what bounds memory when
   * the work cannot keep up or Redis is away.
   * @default 10_000
   */
  maxPending?: number;
  /** Upper limit of the data that waits for one queue, or for the store, bytes of JSON. @default 67_108_864 (64 MiB) */
  maxPendingBytes?: number;
  /**
   * `'drop-new'` and `'drop-old'` drop, count and report. With `'reject'`, `deferrer.defer()` throws
   * `PERF_ERR_DEFER_FULL`, and a `@DeferWork` route whose work finds no room at the handler's end answers 503.
   * @default 'drop-new'
   */
  overflow?: DeferOverflow;
  /**
   * On shutdown, how long accepted work may take to finish or to be handed over, milliseconds. Keep it below the grace
   * period of your platform.
   * @default 10_000
   */
  drainTimeoutMs?: number;
  /**
   * Micro-batches of `addJob` and durable work: sent when there are `maxJobs` or the first has waited `maxWaitMs`.
   * @default { maxJobs: 100, maxWaitMs: 5 }
   */
  batch?: { maxJobs?: number; maxWaitMs?: number };
  /** The store of `durable: true` work: `bullmqStore({ connection })` of `nestjs-perf/bullmq`. @default none */
  store?: DurableStore;
}

const isStore = (given: unknown): boolean => {
  const candidate = given as Partial<DurableStore> | null | undefined;
  return typeof candidate?.start === 'function' && typeof candidate.add === 'function';
};

const store = value<DurableStore>('a store, for example `bullmqStore({ connection })`', isStore);

/** The `defer` row of the option table. */
export const deferOption = feature({
  concurrency: number({ default: 64, unit: 'a whole number of tasks', min: 1, integer: true }),
  maxPending: number({ default: 10_000, unit: 'a whole number of tasks', min: 1, integer: true }),
  maxPendingBytes: bytes({ default: 64 * 1024 * 1024, min: 1 }),
  overflow: choice(['drop-new', 'drop-old', 'reject'], { default: 'drop-new' }),
  drainTimeoutMs: timeout({ default: 10_000, min: 0 }),
  batch: object({
    maxJobs: number({ default: 100, unit: 'a whole number of jobs', min: 1, integer: true }),
    maxWaitMs: timeout({ default: 5, min: 0 }),
  }),
  store: optional(store),
});

/** The resolved row. */
export type ResolvedDeferOptions = NonNullable<Resolved<typeof deferOption>>;
