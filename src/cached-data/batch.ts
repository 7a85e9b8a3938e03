import { describe } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import type { LoadTimes, Readings, Times } from './readings.js';
import { atEndOfTurn } from './turn.js';

interface Asked {
  readonly item: unknown;
  readonly times: LoadTimes;
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
}

/** Calls a method once for all items that are asked for in one turn of the event loop. */
export class Batch {
  private asked: Asked[] = [];

  constructor(
    private readonly method: string,
    private readonly readings: Readings,
    private readonly call: (items: readonly unknown[]) => unknown,
  ) {}

  load(item: unknown, times: LoadTimes): Promise<unknown> {
    if (this.asked.length === 0) atEndOfTurn(() => void this.run());
    return new Promise((resolve, reject) => this.asked.push({ item, times, resolve, reject }));
  }

  private async run(): Promise<void> {
    const asked = this.asked.splice(0);
    const reader = { reads: (read: Times) => asked.forEach(({ times }) => times.reads(read)) };
    try {
      const items = asked.map(({ item }) => item);
      const values: unknown = await this.readings.run(reader, () => this.call(items));
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
