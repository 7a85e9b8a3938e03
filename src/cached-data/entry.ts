import { estimateBytes } from './value.js';

/** Monotonic milliseconds. */
export interface Times {
  readonly loadedAtMs: number;
  readonly freshUntilMs: number;
  readonly staleUntilMs: number;
}

/** A value is as old as the start of its load. */
export function computeTimes(loadedAtMs: number, ttlMs: number, staleMs: number): Times {
  const freshUntilMs = loadedAtMs + ttlMs;
  return { loadedAtMs, freshUntilMs, staleUntilMs: freshUntilMs + staleMs };
}

/** One value with its times. */
export class Entry implements Times {
  readonly promise: Promise<unknown>;
  readonly loadedAtMs: number;
  readonly freshUntilMs: number;
  readonly staleUntilMs: number;
  failures = 0;
  /** No refresh is tried before this, monotonic milliseconds. */
  retryAtMs = 0;
  /** Called when entries that are used more have taken its room. */
  evicted: () => void = () => {};

  constructor(
    readonly key: string,
    readonly value: unknown,
    { loadedAtMs, freshUntilMs, staleUntilMs }: Times,
    readonly startedMs: number,
    readonly loadMs: number,
  ) {
    this.promise = Promise.resolve(value);
    this.loadedAtMs = loadedAtMs;
    this.freshUntilMs = freshUntilMs;
    this.staleUntilMs = staleUntilMs;
  }

  bytesUpTo(limit: number): number {
    return this.key.length * 2 + estimateBytes(this.value, limit);
  }
}

/** When this share of a value's fresh time has passed. */
export const aheadMs = ({ loadedAtMs, freshUntilMs }: Times, share: number): number =>
  loadedAtMs + (freshUntilMs - loadedAtMs) * share;
