import { Injectable } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Cached } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches, fakeTime, gate } from '../../fixtures/cached-data.js';

const MINUTE = 60_000;
let source: () => Promise<unknown>;
let loads: number;
beforeEach(() => {
  loads = 0;
  source = async () => `value ${loads}`;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await closeCaches();
});

const load = (): Promise<unknown> => {
  loads += 1;
  return source();
};

@Injectable()
class Catalogue {
  @Cached({ ttlMs: MINUTE, staleMs: 10 * MINUTE })
  product(_id: string) {
    return load();
  }

  @Cached({ ttlMs: MINUTE })
  strict() {
    return load();
  }

  @Cached({ ttlMs: MINUTE, staleMs: 10 * MINUTE, waitMs: 100 })
  patient() {
    return load();
  }

  @Cached({ ttlMs: MINUTE, staleMs: MINUTE, timeoutMs: 500 })
  hurried() {
    return load();
  }

  @Cached({ ttlMs: MINUTE, refreshAhead: 0.8 })
  ahead() {
    return load();
  }
}

describe('a cached value', () => {
  it('is fresh for `ttlMs`, and without `staleMs` not served a moment longer', async () => {
    const { of } = await cacheOf(Catalogue);
    const pass = fakeTime();
    expect(await of.strict()).toBe('value 1');
    await pass(MINUTE - 1);
    expect(await of.strict()).toBe('value 1');
    await pass(1);
    expect(await of.strict()).toBe('value 2');
  });

  it('is served at once when stale, while one load runs, however many ask (cacheable#619, cachified#132)', async () => {
    const { of, row } = await cacheOf(Catalogue);
    const pass = fakeTime();
    await of.product('1');
    await pass(MINUTE);
    const next = gate<string>();
    source = () => next.passed;
    const answers = await Promise.all(Array.from({ length: 50 }, () => of.product('1')));
    expect(new Set(answers)).toEqual(new Set(['value 1']));
    expect(loads).toBe(2);
    next.open('new');
    await pass(0);
    expect(await of.product('1')).toBe('new');
    expect(row('product')).toMatchObject({ hits: 1, stale: 50, misses: 1, loads: 2 });
  });

  it('outlives a source that is dead for ten minutes, and not a moment longer (nitro#2164, nitro#2611)', async () => {
    const { of, row } = await cacheOf(Catalogue);
    const pass = fakeTime();
    // The pauses at their mean: by chance they may be short in a row.
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    await of.product('1');
    source = async () => Promise.reject(new Error('dead'));
    for (let seconds = 0; seconds < 659; seconds++) {
      expect(await of.product('1')).toBe('value 1');
      await pass(1_000);
    }
    await pass(999);
    expect(await of.product('1')).toBe('value 1');
    // A second apart, then two, and so on up to half a minute.
    expect(row('product').failed).toBeLessThan(30);
    await pass(1);
    await expect(of.product('1')).rejects.toThrow('dead');
    await expect(of.product('1')).rejects.toThrow('dead');
    source = async () => 'back';
    expect(await of.product('1')).toBe('back');
  });

  it('comes again when its source does, while it is stale, and not in all processes at once', async () => {
    const { of } = await cacheOf(Catalogue);
    const pass = fakeTime();
    // Not before: Nest draws the ids of its modules.
    vi.spyOn(Math, 'random').mockReturnValue(0.2);
    await of.product('1');
    await pass(MINUTE);
    source = async () => Promise.reject(new Error('dead'));
    await of.product('1');
    await pass(0);
    source = async () => 'back';
    await pass(400);
    expect(await of.product('1')).toBe('value 1');
    await pass(0);
    expect(await of.product('1')).toBe('back');
  });

  it('is waited for as long as `waitMs`, and then the stale one does (bentocache#103)', async () => {
    const { of } = await cacheOf(Catalogue);
    const pass = fakeTime();
    await of.patient();
    await pass(MINUTE);
    source = async () => 'quick';
    expect(await of.patient()).toBe('quick');
    await pass(MINUTE);
    const slow = gate<string>();
    source = () => slow.passed;
    const asked = of.patient();
    await pass(100);
    expect(await asked).toBe('quick');
    slow.open('late');
    await pass(0);
    expect(await of.patient()).toBe('late');
  });

  it('that takes longer than `timeoutMs` fails for those who wait, and is kept when it comes', async () => {
    const { of, row } = await cacheOf(Catalogue);
    const pass = fakeTime();
    const slow = gate<string>();
    source = () => slow.passed;
    const asked = expect(of.hurried()).rejects.toMatchObject({
      code: 'PERF_ERR_LOAD_TIMEOUT',
      message: expect.stringContaining('"Catalogue.hurried" was not loaded within 500 ms'),
    });
    await pass(500);
    await asked;
    expect(row('hurried')).toMatchObject({ loads: 1, failed: 1 });
    slow.open('late');
    await pass(0);
    expect(await of.hurried()).toBe('late');
    expect(loads).toBe(1);
    expect(row('hurried')).toMatchObject({ loads: 1, failed: 1 });
  });

  it('is updated although loads take longer than `ttlMs` (caffeine#175, caffeine#1478)', async () => {
    const { of } = await cacheOf(Catalogue);
    const pass = fakeTime();
    await of.product('1');
    for (let round = 2; round < 6; round++) {
      const slow = gate<string>();
      source = () => slow.passed;
      await pass(MINUTE);
      await of.product('1');
      await pass(9_000);
      slow.open(`round ${round}`);
      await pass(0);
      expect(await of.product('1')).toBe(`round ${round}`);
    }
  });

  it('is loaded again after a share of `ttlMs` with `refreshAhead`, by who asks then', async () => {
    const { of } = await cacheOf(Catalogue);
    const pass = fakeTime();
    await of.ahead();
    await pass(47_999);
    await of.ahead();
    await pass(1);
    expect(loads).toBe(1);
    expect(await of.ahead()).toBe('value 1');
    await pass(0);
    expect(await of.ahead()).toBe('value 2');
    expect(loads).toBe(2);
  });

  it('that could not be refreshed is no unhandled rejection (node-cached#16)', async () => {
    const unhandled: unknown[] = [];
    const hear = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', hear);
    const { of } = await cacheOf(Catalogue);
    const pass = fakeTime();
    await of.product('1');
    await pass(MINUTE);
    source = async () => Promise.reject(new Error('dead'));
    await of.product('1');
    await pass(1);
    await new Promise(setImmediate);
    process.off('unhandledRejection', hear);
    expect(loads).toBe(2);
    expect(unhandled).toEqual([]);
  });
});
