import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import type { CachedMethodStats, Finding } from '../core/snapshot.js';
import { Batch } from './batch.js';
import type { MakeKey } from './cache-key.js';
import { MethodCache, type CacheParts, type LoadOne, type MethodRules } from './method-cache.js';
import type { Source, StandIn } from './stand-in.js';

/** Of a `@Cached()` method. */
abstract class CachingMethod<Input> implements StandIn {
  protected readonly cache: MethodCache<Input>;

  constructor(
    rules: MethodRules,
    protected readonly keyOf: MakeKey,
    parts: CacheParts,
    load: LoadOne<Input>,
  ) {
    this.cache = new MethodCache(rules, parts, load);
  }

  abstract call(args: unknown[]): Promise<unknown>;

  abstract keysOf(args: readonly unknown[]): readonly string[];

  get method(): string {
    return this.cache.rules.method;
  }

  get keepMs(): number {
    return this.cache.rules.ttlMs + this.cache.rules.staleMs;
  }

  drop(key: string | null): void {
    if (key === null) this.cache.dropAll();
    else this.cache.drop(key);
  }

  missed(): void {
    this.cache.dropAll();
  }

  close(): void {
    this.cache.close();
  }

  stats(): CachedMethodStats {
    return this.cache.counters.stats(this.method, this.cache.size);
  }

  findings(): readonly Finding[] {
    return [];
  }
}

/** One value for the arguments of a call. */
export class OneByOne extends CachingMethod<unknown[]> {
  constructor(source: Source, rules: MethodRules, keyOf: MakeKey, parts: CacheParts) {
    super(rules, keyOf, parts, async (args, times) => parts.readings.run(times, () => source(...args)));
  }

  /** Not `async`: a promise more would cost as much as all of this. */
  call(args: unknown[]): Promise<unknown> {
    let key: string;
    try {
      key = this.keyOf(args);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.cache.get(key, args);
  }

  keysOf(args: readonly unknown[]): readonly string[] {
    return [this.keyOf(args)];
  }
}

/** `batch: true`: one value for each item of the array that the method takes. */
export class Batched extends CachingMethod<unknown> {
  constructor(source: Source, rules: MethodRules, keyOf: MakeKey, parts: CacheParts) {
    const batch = new Batch(rules.method, parts.readings, source);
    super(rules, keyOf, parts, (item, times) => batch.load(item, times));
  }

  async call(args: unknown[]): Promise<unknown[]> {
    const items = itemsOf(args, this.method);
    const keys = this.keysOf(args);
    return Promise.all(keys.map((key, index) => this.cache.get(key, items[index])));
  }

  keysOf(args: readonly unknown[]): readonly string[] {
    return itemsOf(args, this.method).map((item) => this.keyOf([item]));
  }
}

/**
 * What a batch method's only argument holds.
 * @throws PERF_ERR_CACHE_KEY
 */
export function itemsOf(args: readonly unknown[], method: string): readonly unknown[] {
  const [items] = args;
  if (args.length === 1 && Array.isArray(items)) return Array.from<unknown>(items);
  const given = args.length === 1 ? describe(items) : `${args.length} arguments`;
  throw new PerfError('PERF_ERR_CACHE_KEY', `"${method}" has \`batch: true\` and takes one array, got ${given}.`);
}
