import type { Type } from '@nestjs/common';
import type { CachedMethodStats } from '../core/snapshot.js';

/** One cached method. */
export interface CachedMethod<Args extends unknown[]> {
  /**
   * Forgets the value of one call, in all pods that share a level 2.
   * @throws PERF_ERR_OPTION for a method that is not decorated, PERF_ERR_CACHE_KEY
   */
  invalidate(...args: Args): void;
  /** Forgets everything of the method. */
  invalidateAll(): void;
}

/** The methods of a class that return promises, by name. */
export type CachedMethods<T> = {
  readonly [K in keyof T as T[K] extends (...args: never[]) => Promise<unknown> ? K : never]: T[K] extends (
    ...args: infer Args
  ) => unknown
    ? CachedMethod<Args>
    : never;
};

/** Forgets cached values, and counts how well caching works. Injectable where `cache()` is among the extensions. */
export abstract class PerfCache {
  /**
   * The methods of a class, with the types of their arguments.
   * @example cache.for(Catalogue).product.invalidate('42')
   */
  abstract for<T extends object>(target: Type<T>): CachedMethods<T>;

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
