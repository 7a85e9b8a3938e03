import type { GhostFigure } from '../core/snapshot.js';

/** What is tried, milliseconds. */
const TTLS_MS = [1_000, 15_000, 60_000, 300_000] as const;

/** What a cache would have done for one call. */
export type GhostHits = readonly boolean[];

/** Caches with several `ttlMs` that hold no value: they say what they would have saved. */
export class Ghost {
  /** When each key was loaded for each of them; the least used leave first. */
  private readonly loadedAtMs = new Map<string, number[]>();
  private calls = 0;
  private readonly hits = TTLS_MS.map(() => 0);
  private readonly savedMs = TTLS_MS.map(() => 0);

  /** `maxEntries`: how many values the cache would keep. */
  constructor(private readonly maxEntries: number) {}

  called(key: string, nowMs: number): GhostHits {
    this.calls += 1;
    const loaded = this.loadedAtMs.get(key) ?? TTLS_MS.map(() => -Infinity);
    this.loadedAtMs.delete(key);
    this.loadedAtMs.set(key, loaded);
    if (this.loadedAtMs.size > this.maxEntries) this.loadedAtMs.delete(this.loadedAtMs.keys().next().value!);
    return TTLS_MS.map((ttlMs, i) => {
      if (nowMs - loaded[i]! < ttlMs) return true;
      loaded[i] = nowMs;
      return false;
    });
  }

  /** The call has ended. */
  took(hits: GhostHits, ms: number): void {
    hits.forEach((hit, i) => {
      if (!hit) return;
      this.hits[i]! += 1;
      this.savedMs[i]! += ms;
    });
  }

  /** It was not loaded after all. */
  forget(key: string): void {
    this.loadedAtMs.delete(key);
  }

  figures(): GhostFigure[] {
    const calls = Math.max(1, this.calls);
    return TTLS_MS.map((ttlMs, i) => ({
      ttlMs,
      hitRatio: this.hits[i]! / calls,
      savedMsPerCall: this.savedMs[i]! / calls,
    }));
  }
}
