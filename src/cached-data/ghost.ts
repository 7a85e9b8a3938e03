import type { GhostFigure } from '../core/snapshot.js';

/** What is tried, milliseconds. */
const TTLS_MS = [1_000, 15_000, 60_000, 300_000] as const;
/** Keys that are followed; where there are more, a share of them that their hash chooses. */
const MAX_KEYS = 8_192;

/** What a cache would have done for one call. */
export type GhostHits = readonly boolean[];

/** Caches with several `ttlMs` that hold no value: they say what they would have saved. */
export class Ghost {
  private readonly loadedAtMs = new Map<number, number[]>();
  /** One key in so many is followed: a power of two. */
  private oneIn = 1;
  private calls = 0;
  private readonly hits = TTLS_MS.map(() => 0);
  private readonly savedMs = TTLS_MS.map(() => 0);

  /** Null: this key is not followed. */
  called(key: string, nowMs: number): GhostHits | null {
    const hash = hashOf(key);
    if (hash % this.oneIn !== 0) return null;
    this.calls += 1;
    const loaded = this.loadedAtMs.get(hash) ?? TTLS_MS.map(() => -Infinity);
    this.loadedAtMs.set(hash, loaded);
    if (this.loadedAtMs.size > MAX_KEYS) this.followHalf();
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
    this.loadedAtMs.delete(hashOf(key));
  }

  figures(): GhostFigure[] {
    const calls = Math.max(1, this.calls);
    return TTLS_MS.map((ttlMs, i) => ({
      ttlMs,
      hitRatio: this.hits[i]! / calls,
      savedMsPerCall: this.savedMs[i]! / calls,
    }));
  }

  private followHalf(): void {
    this.oneIn *= 2;
    for (const hash of this.loadedAtMs.keys()) if (hash % this.oneIn !== 0) this.loadedAtMs.delete(hash);
  }
}

/** FNV-1a with 32 bits: https://datatracker.ietf.org/doc/draft-eastlake-fnv/ */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // The lowest bits of FNV follow the text's too closely.
  return (hash ^ (hash >>> 15)) >>> 0;
}
