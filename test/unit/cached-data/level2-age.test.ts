import { Injectable } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import type { Level2, Level2Maker } from '../../../src/cached-data/level2.js';
import { cacheOf, closeCaches, fakeTime } from '../../fixtures/cached-data.js';

afterEach(closeCaches);

@Injectable()
class Catalogue {
  @Cached({ ttlMs: 1_000 })
  async product() {
    return 'loaded here';
  }
}

/** Its answer says how old the value is, and then is on its way for 40 ms. */
const slowLevel2: Level2Maker = {
  name: 'slow',
  open: async () =>
    ({
      read: () =>
        new Promise((resolve) =>
          setTimeout(() => resolve({ atMs: 0, value: { ageMs: 900, text: '"of another pod"' } }), 40),
        ),
      write: () => {},
      invalidate: () => {},
      close: async () => {},
    }) satisfies Level2,
};

describe('a value of level 2', () => {
  it('ages on while its answer is on its way', async () => {
    const { of, row } = await cacheOf(Catalogue, { level2: slowLevel2 });
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
});
