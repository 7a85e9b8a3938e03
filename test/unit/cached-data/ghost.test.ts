import { Injectable } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches, fakeTime } from '../../fixtures/cached-data.js';

afterEach(closeCaches);

@Injectable()
class Watched {
  @Cached({ ttlMs: 60_000, ghost: true })
  related(id: string) {
    return new Promise((resolve) => setTimeout(resolve, 14, id));
  }

  @Cached({ ttlMs: 60_000, ghost: true })
  broken(how: string): Promise<never> {
    if (how === 'at once') throw new Error('no');
    return Promise.reject(new Error('no'));
  }

  sent = 0;

  /** As query builders have it: it is sent by whoever asks for its result. */
  @Cached({ ttlMs: 60_000, ghost: true })
  lazy(): Promise<number> {
    // oxlint-disable-next-line unicorn/no-thenable -- a query builder
    return { then: (resolve: (sent: number) => void) => resolve((this.sent += 1)) } as Promise<number>;
  }
}

describe('a ghost', () => {
  it('serves nothing, and says what caching would have saved', async () => {
    const { of, row, perf } = await cacheOf(Watched);
    const pass = fakeTime();
    for (let round = 0; round < 40; round++) {
      for (const id of ['a', 'b', 'c']) {
        const asked = of.related(id);
        await pass(14);
        expect(await asked).toBe(id);
      }
      await pass(1_958);
    }
    const { ghost, ...counts } = row('related');
    expect(counts).toMatchObject({ entries: 0, hits: 0, misses: 120, loads: 120, loadMs: { mean: 14 } });
    // Every two seconds: nothing within one, seven of eight within 15, all but one of each key in five minutes.
    expect(ghost).toEqual([
      { ttlMs: 1_000, hitRatio: 0, savedMsPerCall: 0 },
      { ttlMs: 15_000, hitRatio: 0.875, savedMsPerCall: 12.25 },
      { ttlMs: 60_000, hitRatio: 0.95, savedMsPerCall: expect.closeTo(13.3) },
      { ttlMs: 300_000, hitRatio: 0.975, savedMsPerCall: expect.closeTo(13.65) },
    ]);
    expect(perf.snapshot().findings).toContainEqual({
      kind: 'worth-caching',
      route: null,
      text:
        '`@Cached({ ttlMs: 60_000 })` would have saved 13 of the 14 ms that a call of Watched.related takes: ' +
        '95 % of its calls ask for what was loaded within that time',
    });
  });

  it.each(['at once', 'later'])('counts no failure as something that a cache would have had (%s)', async (how) => {
    const { of, row } = await cacheOf(Watched);
    for (let i = 0; i < 3; i++) await expect(Promise.resolve().then(() => of.broken(how))).rejects.toThrow('no');
    const { ghost, ...counts } = row('broken');
    expect(counts).toMatchObject({ misses: 3, loads: 3, failed: 3 });
    expect(ghost!.map(({ hitRatio }) => hitRatio)).toEqual([0, 0, 0, 0]);
  });

  it('asks a result that is sent by whoever waits for it once a call', async () => {
    const { of } = await cacheOf(Watched);
    expect([await of.lazy(), await of.lazy(), of.sent]).toEqual([1, 2, 2]);
  });
});
