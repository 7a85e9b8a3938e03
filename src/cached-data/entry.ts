import type { Bounded } from './bound.js';
import type { LoadTimes, Times } from './readings.js';
import { bytesOf } from './value.js';

/** One value, and what is known of it. */
export class Entry implements Bounded, Times {
  readonly promise: Promise<unknown>;
  readonly loadedAtMs: number;
  readonly freshUntilMs: number;
  readonly staleUntilMs: number;
  failures = 0;
  /** No refresh is tried before this, monotonic milliseconds. */
  retryAtMs = 0;
  evicted: () => void = () => {};

  constructor(
    readonly key: string,
    readonly value: unknown,
    { loadedAtMs, freshUntilMs, staleUntilMs }: LoadTimes,
    readonly startedMs: number,
    readonly loadMs: number,
  ) {
    this.promise = Promise.resolve(value);
    this.loadedAtMs = loadedAtMs;
    this.freshUntilMs = freshUntilMs;
    this.staleUntilMs = staleUntilMs;
  }

  bytesUpTo(limit: number): number {
    return this.key.length * 2 + bytesOf(this.value, limit);
  }
}

/** When this share of a value's fresh time has passed. */
export const aheadMs = ({ loadedAtMs, freshUntilMs }: Times, share: number): number =>
  loadedAtMs + (freshUntilMs - loadedAtMs) * share;
