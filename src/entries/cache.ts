import { cachedData } from '../cached-data/cached-data.feature.js';
import { cacheOption, type CacheOptions } from '../cached-data/cached.options.js';
import type { Entry } from '../cached-data/entry.js';
import type { MakeBound, Values } from '../cached-data/values.js';
import { optionalPeer } from '../core/optional-peer.js';
import type { PerfExtension } from '../request/extension.js';

/**
 * Lets `@Cached()` and `@Preloaded()` work: `PerfModule.forRoot({ extensions: [cache()] })`. Needs the package lru-cache.
 * @throws PERF_ERR_OPTION; PERF_ERR_MISSING_PEER at boot
 */
export const cache = (options?: CacheOptions): PerfExtension =>
  cachedData(cacheOption.read(options, 'cache'), loadBound);

/** Loads lru-cache at boot rather than with this module, so that an error explains its absence. */
async function loadBound(): Promise<MakeBound> {
  const { LRUCache } = await optionalPeer('lru-cache', '`cache()`', () => import('lru-cache'));
  return (max, maxSize) =>
    new LRUCache<Entry, Values>({
      max,
      maxSize,
      sizeCalculation: (_values, entry) => entry.bytesUpTo(maxSize),
      // `dispose` would not do: nothing may be deleted within it.
      disposeAfter: (values, entry, reason) => {
        if (reason === 'evict') values.remove(entry);
      },
    });
}

export { Cached, Preloaded, type AsyncMethodDecorator } from '../cached-data/decorators.js';
export { PerfCache } from '../cached-data/perf-cache.js';
export type { CachedMethod, CachedMethods } from '../cached-data/perf-cache.js';
export type { CachedOptions, CacheOptions, PreloadedOptions } from '../cached-data/cached.options.js';
export type { CacheLevel2 } from '../cached-data/level2.js';
export type { CachedMethodStats, Durations } from '../core/snapshot.js';
