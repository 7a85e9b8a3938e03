import type { LRUCache } from 'lru-cache';
import type { Bound, Bounded, BoundLimits, MakeBound } from '../../cached-data/bound.js';
import { optionalPeer } from '../../core/optional-peer.js';

/**
 * Loads lru-cache at boot rather than with this module, so that an error explains its absence.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function lruBounds(): Promise<MakeBound> {
  const vendor = await optionalPeer('lru-cache', '`cache()`', () => import('lru-cache'));
  return (limits) => new LruBound(vendor.LRUCache, limits);
}

class LruBound implements Bound {
  private readonly kept: LRUCache<Bounded, Bounded>;

  constructor(Lru: typeof LRUCache, { maxEntries, maxBytes }: BoundLimits) {
    this.kept = new Lru<Bounded, Bounded>({
      max: maxEntries,
      ...(maxBytes === null
        ? {}
        : { maxSize: maxBytes, sizeCalculation: (entry: Bounded) => entry.bytesUpTo(maxBytes) }),
      // `dispose` would not do: nothing may be deleted within it.
      disposeAfter: (entry, _, reason) => {
        if (reason === 'evict') entry.evicted();
      },
    });
  }

  add(entry: Bounded): boolean {
    this.kept.set(entry, entry);
    return this.kept.has(entry);
  }

  use(entry: Bounded): void {
    this.kept.get(entry);
  }

  remove(entry: Bounded): void {
    this.kept.delete(entry);
  }
}
