import type { CachedMethodStats } from '../core/snapshot.js';
import { ByInstance } from '../request/by-instance.js';

/** A method as its class declares it, bound to its instance. */
export type Source = (...args: unknown[]) => unknown;

/** The calls of one decorated method of one instance, while the application runs. */
export interface CachedCalls {
  /** `'Catalogue.product'` */
  readonly method: string;
  /** The longest time that a value may serve, milliseconds. */
  readonly keepMs: number;
  call(args: unknown[]): unknown;
  /**
   * Keys of the values that a call with these arguments reads; null: there is one only.
   * @throws PERF_ERR_CACHE_KEY
   */
  makeKeys(args: readonly unknown[]): readonly (string | null)[];
  /** Forgets one value, with null all; a load in flight is not kept. */
  drop(key: string | null): void;
  /** Other pods may have invalidated something. */
  missed(): void;
  /** Leaves no timer. */
  close(): void;
  stats(): CachedMethodStats;
}

/**
 * By instance, then by the method that is decorated: an override that calls the method of its base class has its own. A call of an
 * instance that is not here runs the method.
 */
export const cachedInstances = new ByInstance<Map<object, CachedCalls>>();
