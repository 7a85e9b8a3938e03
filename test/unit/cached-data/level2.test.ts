import { Injectable } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import { answersOf, cacheOf, closeCaches, fakeTime } from '../../fixtures/cached-data.js';

let loads: string[];
beforeEach(() => (loads = []));
afterEach(closeCaches);

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 1_000 })
  async product() {
    return 'loaded here';
  }

  @Cached({ ttlMs: 60_000, batch: true })
  async stock(ids: readonly number[]) {
    loads.push(ids.join());
    return ids.map((id) => `loaded ${id}`);
  }
}

it('a value of level 2 ages on while its answer is on its way', async () => {
  const answer = { atMs: 0, value: { ageMs: 900, text: '"of another pod"' } };
  const level2 = answersOf(() => new Promise((resolve) => setTimeout(resolve, 40, answer)));
  const { of, row } = await cacheOf(Catalogue, { level2 });
  const pass = fakeTime();
  const asked = of.product();
  await pass(40);
  expect(await asked).toBe('of another pod');
  await pass(59);
  await of.product();
  expect(row('product')).toMatchObject({ hits: 1, misses: 1 });
  await pass(1);
  void of.product();
  expect(row('product')).toMatchObject({ hits: 1, misses: 2 });
  await pass(40);
});

describe('a batch with a level 2', () => {
  /** Each answer comes in a turn of its own. It holds the value of the key `2`. */
  function oneByOne() {
    let reads = 0;
    return answersOf(async (_method, key) => {
      reads += 1;
      for (let turns = reads; turns > 0; turns -= 1) await new Promise(setImmediate);
      return { atMs: 0, value: key.includes('2') ? { ageMs: 0, text: '"of another pod"' } : null };
    });
  }

  it('loads in one call what the level lacks, in whatever order its answers come', async () => {
    const { of } = await cacheOf(Catalogue, { level2: oneByOne() });
    const [first, second] = await Promise.all([of.stock([1, 2, 3]), of.stock([4, 3])]);
    expect(first).toEqual(['loaded 1', 'of another pod', 'loaded 3']);
    expect(second).toEqual(['loaded 4', 'loaded 3']);
    expect(loads).toEqual(['1,3,4']);
  });

  it('waits for no item that is asked for later', async () => {
    const { of } = await cacheOf(Catalogue, { level2: oneByOne() });
    expect(await of.stock([1])).toEqual(['loaded 1']);
    expect(await of.stock([3, 4])).toEqual(['loaded 3', 'loaded 4']);
    expect(loads).toEqual(['1', '3,4']);
  });
});
