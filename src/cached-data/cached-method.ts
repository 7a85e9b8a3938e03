import { Batch } from './batch.js';
import { itemsOf, type MakeKey } from './cache-key.js';
import { MethodCache, type CacheParts, type MethodRules } from './method-cache.js';
import type { LoadTimes } from './readings.js';
import type { Source } from './stand-in.js';

/** Of a `@Cached()` method: one value for the arguments of a call. */
export class OneByOne extends MethodCache<unknown[]> {
  constructor(
    private readonly source: Source,
    rules: MethodRules,
    private readonly keyOf: MakeKey,
    parts: CacheParts,
  ) {
    super(rules, parts);
  }

  /** Not `async`: a promise more would cost as much as all of this. */
  call(args: unknown[]): Promise<unknown> {
    let key: string;
    try {
      key = this.keyOf(args);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.get(key, args);
  }

  keysOf(args: readonly unknown[]): readonly string[] {
    return [this.keyOf(args)];
  }

  protected async loadOne(args: unknown[], times: LoadTimes): Promise<unknown> {
    return this.parts.readings.run(times, () => this.source(...args));
  }
}

/** With `batch: true`: one value for each item of the array that the method takes. */
export class Batched extends MethodCache<unknown> {
  private readonly batch: Batch;

  constructor(
    source: Source,
    rules: MethodRules,
    private readonly keyOf: MakeKey,
    parts: CacheParts,
  ) {
    super(rules, parts);
    this.batch = new Batch(rules.method, parts.readings, source);
  }

  async call(args: unknown[]): Promise<unknown[]> {
    const items = itemsOf(args, this.method);
    const keys = this.keysOf(args);
    return Promise.all(keys.map((key, index) => this.get(key, items[index])));
  }

  keysOf(args: readonly unknown[]): readonly string[] {
    return itemsOf(args, this.method).map((item) => this.keyOf([item]));
  }

  protected loadOne(item: unknown, times: LoadTimes): Promise<unknown> {
    return this.batch.load(item, times);
  }
}
