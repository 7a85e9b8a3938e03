import type { ResolvedCached } from './cached.options.js';
import { estimateBytes } from './value.js';

/** One value with its times, monotonic milliseconds. A value is as old as the start of its load. */
export class Entry {
  readonly promise: Promise<unknown>;
  readonly freshUntilMs: number;
  readonly staleUntilMs: number;
  failures = 0;
  /** No refresh is tried before this. */
  retryAtMs = 0;

  constructor(
    readonly key: string,
    readonly value: unknown,
    readonly loadedAtMs: number,
    { ttlMs, staleMs }: Pick<ResolvedCached, 'ttlMs' | 'staleMs'>,
    /** When this process began to load or to read it. */
    readonly startedMs: number,
    readonly loadMs: number,
  ) {
    this.promise = Promise.resolve(value);
    this.freshUntilMs = loadedAtMs + ttlMs;
    this.staleUntilMs = this.freshUntilMs + staleMs;
  }

  bytesUpTo(limit: number): number {
    return this.key.length * 2 + estimateBytes(this.value, limit);
  }
}
