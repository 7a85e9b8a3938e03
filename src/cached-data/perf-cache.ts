import type { Type } from '@nestjs/common';
import type { CachedMethodStats } from '../core/snapshot.js';

/** Forgets cached values, and tells how well caching works. Injectable where `cache()` is among the extensions. */
export abstract class PerfCache {
  /**
   * Forgets the value of one call, in all pods that share a level 2: the next caller waits for a new one. What is being loaded
   * began before, and is not kept. With `batch: true` the argument is the array of items; a preloaded value is loaded at once.
   * @example cache.invalidate(Catalogue, 'product', '42')
   * @throws PERF_ERR_OPTION for a method that is not decorated, PERF_ERR_CACHE_KEY
   */
  abstract invalidate(target: Type, method: string, ...args: unknown[]): void;

  /**
   * Forgets everything of one method, or of all methods of a class.
   * @throws PERF_ERR_OPTION for a method that is not decorated
   */
  abstract invalidateAll(target: Type, method?: string): void;

  /** One row a method and instance. */
  abstract stats(): readonly CachedMethodStats[];
}
