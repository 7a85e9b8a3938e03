import type { MakeBound } from '../../cached-data/bound.js';
import type { Entry } from '../../cached-data/entry.js';
import { optionalPeer } from '../../core/optional-peer.js';

/**
 * Loads lru-cache at boot rather than with this module, so that an error explains its absence.
 * @throws PERF_ERR_MISSING_PEER
 */
export async function lruBounds(): Promise<MakeBound> {
  const { LRUCache } = await optionalPeer('lru-cache', '`cache()`', () => import('lru-cache'));
  return (options) => new LRUCache<Entry, Entry>(options);
}
