import type { CachedMethodStats, Finding } from '../core/snapshot.js';
import { PerfError } from '../core/perf.error.js';

/** A method as its class has it, bound to its instance. */
export type Source = (...args: unknown[]) => unknown;

/** What stands for a decorated method on its instance while the application runs. */
export interface StandIn {
  /** `'Catalogue.product'` */
  readonly method: string;
  /** The longest that a value of it may serve, milliseconds. */
  readonly keepMs: number;
  call(args: unknown[]): unknown;
  /**
   * Keys of the values that a call with these arguments reads; null: there is one only.
   * @throws PERF_ERR_CACHE_KEY
   */
  keysOf(args: readonly unknown[]): readonly (string | null)[];
  /** Forgets one value, with null all; what is being loaded is not kept. */
  drop(key: string | null): void;
  /** Other pods may have invalidated something. */
  missed(): void;
  /** Leaves no timer. */
  close(): void;
  stats(): CachedMethodStats;
  findings?(): readonly Finding[];
}

/** Functions of ours, and what each stands for: an instance may be a provider of several applications. */
const originals = new WeakMap<object, Source>();

/**
 * Puts a stand-in on an instance, for calls from within its class too; the class stays as it is.
 * @returns what takes it away again
 * @throws PERF_ERR_DECORATOR for an instance that cannot be changed
 */
export function place(instance: object, property: string, make: (source: Source) => StandIn): () => void {
  const own = Object.getOwnPropertyDescriptor(instance, property);
  const found = Reflect.get(instance, property) as Source;
  const method = originals.get(found) ?? found;
  const standIn = make((...args) => method.apply(instance, args));
  const placed: Source = (...args) => standIn.call(args);
  originals.set(placed, method);
  const descriptor = { value: placed, writable: true, configurable: true, enumerable: false };
  if (!Reflect.defineProperty(instance, property, descriptor)) {
    throw new PerfError(
      'PERF_ERR_DECORATOR',
      `"${standIn.method}" cannot be cached: its instance is frozen. Do not freeze providers that have cached methods.`,
    );
  }
  return () => {
    if (Object.getOwnPropertyDescriptor(instance, property)?.value !== placed) return;
    if (own === undefined || originals.has(own.value as object)) Reflect.deleteProperty(instance, property);
    else Object.defineProperty(instance, property, own);
  };
}
