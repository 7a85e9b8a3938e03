import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { readItems } from './cache-key.js';
import { Turn } from './flight.js';
import type { Level2, Level2Answer } from './level2.js';
import { MethodCache } from './method-cache.js';

/** A `@Cached()` method with one value for the arguments of a call. */
export class OneByOne extends MethodCache<unknown[]> {
  /** Returns the cache's promise: `async` would add one that costs as much as all of this. */
  call(args: unknown[]): Promise<unknown> {
    let key: string;
    try {
      key = this.rules.makeKey(args);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.get(key, args);
  }

  makeKeys(args: readonly unknown[]): readonly string[] {
    return [this.rules.makeKey(args)];
  }

  protected async loadOne(args: unknown[]): Promise<unknown> {
    return this.source(...args);
  }
}

/** A call that waits for one item. */
interface Asked {
  readonly item: unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** A read of level 2. */
interface Read {
  readonly answer: Promise<Level2Answer | null>;
  readonly end: () => void;
}

/** A method with `batch: true`: one value for each item of its array, one call for all items of a turn of the loop. */
export class Batched extends MethodCache<unknown> {
  private readonly asked = new Turn<Asked>((asked) => this.loadAsked(asked));
  private readonly reads = new Turn<Read>(async (reads) => {
    await Promise.all(reads.map(({ answer }) => answer));
    for (const { end } of reads) end();
  });

  async call(args: unknown[]): Promise<unknown[]> {
    const items = readItems(args, this.method);
    // All keys first: an item without one must leave no load behind.
    const keys = this.makeKeys(args);
    return Promise.all(keys.map((key, index) => this.get(key, items[index])));
  }

  makeKeys(args: readonly unknown[]): readonly string[] {
    return readItems(args, this.method).map((item) => this.rules.makeKey([item]));
  }

  protected loadOne(item: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => this.asked.add({ item, resolve, reject }));
  }

  /** The reads of one turn end together: one call then loads the items that were not found. */
  protected override async readLevel2(level2: Level2, key: string): Promise<Level2Answer | null> {
    const answer = super.readLevel2(level2, key);
    await new Promise<void>((end) => this.reads.add({ answer, end }));
    return answer;
  }

  private async loadAsked(asked: readonly Asked[]): Promise<void> {
    try {
      const items = asked.map(({ item }) => item);
      const values = await this.source(items);
      if (!Array.isArray(values) || values.length !== asked.length) throw this.notOneEach(values, asked.length);
      asked.forEach(({ resolve }, index) => resolve(values[index]));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }

  private notOneEach(values: unknown, count: number): PerfError {
    return new PerfError(
      'PERF_ERR_DECORATOR',
      `@Cached({ batch: true }) on "${this.method}": it must return an array with a value for each of ${count} items, ` +
        `got ${describe(values)}. Return \`undefined\` for an item that there is none of.`,
    );
  }
}
