import { MAX_TIMER_MS } from '../core/clock.js';
import { boolean, number, object, optional, optionalNumber, value, type Resolved } from '../core/option.js';
import { bytes, duration, timeout } from '../core/shared-options.js';
import type { OwnKey } from './cache-key.js';
import type { CacheLevel2, Level2Maker } from './level2.js';

/** The options of `@Cached()`. */
export interface CachedOptions {
  /** Time for which a value is fresh, milliseconds from the start of its load. */
  ttlMs: number;
  /**
   * Time after `ttlMs` in which it still serves, at once, while one load runs or loads fail, milliseconds. Then callers get the
   * error.
   * @default 0
   */
  staleMs?: number;
  /**
   * Returns the key of a call: calls with one key have one value. It must contain all that the value depends on, the user included.
   * @default type and value of each argument; plain objects and arrays as JSON with sorted keys
   */
  key?: (...args: any[]) => string;
  /**
   * Time that a caller waits for the load before it takes a stale value, milliseconds.
   * @default 0
   */
  waitMs?: number;
  /**
   * Time that callers wait for one load, milliseconds; no other is started meanwhile. A later value is kept nevertheless.
   * @default 10_000
   */
  timeoutMs?: number;
  /**
   * Share of `ttlMs` after which the next caller starts a load while the value is still fresh: `0.8`.
   * @default none
   */
  refreshAhead?: number;
  /**
   * The method takes one array, and returns one value for each of its items, in their order: it is called once for all items
   * that are missing in one turn of the event loop, for all callers.
   * @default false
   */
  batch?: boolean;
  /**
   * How many values of this method are kept, the least used leaving first. `maxEntries` and `maxBytes` of `cache()` hold in
   * any case.
   * @default that of `cache()`
   */
  maxEntries?: number;
  /**
   * Whether the level that all pods share keeps it too, where `cache()` has one.
   * @default true
   */
  level2?: boolean;
}

/** The options of `@Preloaded()`. */
export interface PreloadedOptions {
  /** Time between the end of a load and the start of the next, milliseconds, give or take 10 % at random. */
  everyMs: number;
  /**
   * Whether the application starts only with a value. `false`: the boot does not wait, and calls before the first load has
   * ended reject with `PERF_ERR_NOT_LOADED`.
   * @default true
   */
  required?: boolean;
  /**
   * Time that one load may take, milliseconds. A later value is kept nevertheless.
   * @default 30_000
   */
  timeoutMs?: number;
}

/** The options of `cache()`. */
export interface CacheOptions {
  /**
   * Values of all `@Cached()` methods together; the least used leave first.
   * @default 10_000
   */
  maxEntries?: number;
  /**
   * Their size in memory together, roughly; bytes.
   * @default 67_108_864 (64 MiB)
   */
  maxBytes?: number;
  /**
   * A level that all pods share: `redisCache({ connection })` of `nestjs-perf/redis`.
   * @default none
   */
  level2?: CacheLevel2;
}

/** A timer that comes up to 10 % later must still count so far. */
const MAX_INTERVAL_MS = Math.floor(MAX_TIMER_MS / 1.1);
/** lru-cache makes room for all of them at once. */
const MOST_ENTRIES = 10_000_000;

const entries = { unit: 'a whole number of entries', integer: true, max: MOST_ENTRIES };

export const cachedOption = object({
  ttlMs: duration(),
  staleMs: duration({ default: 0, min: 0 }),
  key: optional(
    value<OwnKey>('a function of the arguments that returns a string', (given) => typeof given === 'function'),
  ),
  waitMs: timeout({ default: 0, min: 0 }),
  timeoutMs: timeout({ default: 10_000 }),
  refreshAhead: optionalNumber({ unit: 'a share of `ttlMs`', max: 1 }),
  batch: boolean({ default: false }),
  maxEntries: optionalNumber(entries),
  level2: boolean({ default: true }),
});
export const preloadedOption = object({
  everyMs: duration({ max: MAX_INTERVAL_MS }),
  required: boolean({ default: true }),
  timeoutMs: timeout({ default: 30_000 }),
});
export const cacheOption = object({
  maxEntries: number({ ...entries, default: 10_000 }),
  maxBytes: bytes({ default: 2 ** 26 }),
  level2: optional(
    value<Level2Maker>('a second level, as `redisCache()` makes one', (given) => {
      const candidate = given as Partial<CacheLevel2> | null;
      return typeof candidate?.open === 'function' && typeof candidate.name === 'string';
    }),
  ),
});

export type ResolvedCached = Resolved<typeof cachedOption>;
export type ResolvedPreloaded = Resolved<typeof preloadedOption>;
export type ResolvedCache = Resolved<typeof cacheOption>;
