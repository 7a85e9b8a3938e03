import type { CachedMethodStats, Finding } from '../core/snapshot.js';
import { PerfError } from '../core/perf.error.js';
import { likeMethod, putOn } from '../core/stand-in.js';

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
  const found = Reflect.get(instance, property) as Source;
  const method = originals.get(found) ?? found;
  const standIn = make((...args) => method.apply(instance, args));
  const stands = likeMethod<Source>((...args) => standIn.call(args), method);
  originals.set(stands, method);
  const takeAway = putOn(instance, property, stands);
  if (takeAway !== null) return takeAway;
  throw new PerfError(
    'PERF_ERR_DECORATOR',
    `"${standIn.method}" cannot be cached: its instance is frozen. Do not freeze providers that have cached methods.`,
  );
}
