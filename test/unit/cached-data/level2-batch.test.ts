import { Injectable } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import type { Level2, Level2Maker } from '../../../src/cached-data/level2.js';
import { cacheOf, closeCaches } from '../../fixtures/cached-data.js';

const loads: string[] = [];
afterEach(async () => {
  loads.length = 0;
  await closeCaches();
});

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 60_000, batch: true })
  async stock(ids: readonly number[]) {
    loads.push(ids.join());
    return ids.map((id) => `loaded ${id}`);
  }
}

/** Each answer comes in a turn of its own. It holds the value of the key `2`. */
const answersOneByOne: Level2Maker = {
  name: 'one by one',
  open: async () => {
    let reads = 0;
    return {
      read: async (_method, key) => {
        reads += 1;
        for (let turns = reads; turns > 0; turns -= 1) await new Promise(setImmediate);
        return { atMs: 0, value: key.includes('2') ? { ageMs: 0, text: '"of another pod"' } : null };
      },
      write: () => {},
      invalidate: () => {},
      close: async () => {},
    } satisfies Level2;
  },
};

describe('a batch with a level 2', () => {
  it('loads in one call what the level lacks, in whatever order its answers come', async () => {
    const { of } = await cacheOf(Catalogue, { level2: answersOneByOne });
    const [first, second] = await Promise.all([of.stock([1, 2, 3]), of.stock([4, 3])]);
    expect(first).toEqual(['loaded 1', 'of another pod', 'loaded 3']);
    expect(second).toEqual(['loaded 4', 'loaded 3']);
    expect(loads).toEqual(['1,3,4']);
  });

  it('waits for no item that is asked for later', async () => {
    const { of } = await cacheOf(Catalogue, { level2: answersOneByOne });
    expect(await of.stock([1])).toEqual(['loaded 1']);
    expect(await of.stock([3, 4])).toEqual(['loaded 3', 'loaded 4']);
    expect(loads).toEqual(['1', '3,4']);
  });
});
