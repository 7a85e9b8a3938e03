import { cachedData } from '../cached-data/cached-data.feature.js';
import { cacheOption, type CacheOptions } from '../cached-data/cached.options.js';
import type { PerfExtension } from '../request/extension.js';
import { lruBounds } from './cache/lru-bound.js';

/**
 * Lets `@Cached()` and `@Preloaded()` work: `PerfModule.forRoot({ extensions: [cache()] })`. Needs the package lru-cache.
 * @throws PERF_ERR_OPTION; PERF_ERR_MISSING_PEER at boot
 */
export const cache = (options?: CacheOptions): PerfExtension =>
  cachedData(cacheOption.read(options, 'cache'), lruBounds);

export { Cached, Preloaded, type AsyncMethodDecorator } from '../cached-data/decorators.js';
export { PerfCache } from '../cached-data/perf-cache.js';
export type { CachedMethod, CachedMethods } from '../cached-data/perf-cache.js';
export type { CachedOptions, CacheOptions, PreloadedOptions } from '../cached-data/cached.options.js';
export type { CacheLevel2 } from '../cached-data/level2.js';
export type { CachedMethodStats, Durations } from '../core/snapshot.js';
