import { Injectable } from '@nestjs/common';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Preloaded } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches, fakeTime } from '../../fixtures/cached-data.js';

let source: () => Promise<string>;
const dead = (): Promise<string> => Promise.reject(new Error('dead'));
beforeEach(() => (source = async () => 'prices'));
afterEach(closeCaches);

@Injectable()
class Catalogue {
  @Preloaded({ everyMs: 30_000, timeoutMs: 5_000 })
  prices() {
    return source();
  }
  @Preloaded({ everyMs: 30_000, timeoutMs: 5_000, required: false })
  rates() {
    return source();
  }
}

it('health() is degraded while required preloaded data is overdue, and ok once it is loaded again', async () => {
  const pass = fakeTime();
  const { perf, of } = await cacheOf(Catalogue);
  expect(perf.health()).toEqual({ status: 'ok', reasons: [] });
  source = dead;
  // A load may be a tenth late, and take as long as it may.
  await pass(37_000);
  expect(perf.health().status).toBe('ok');
  await pass(3_000);
  const reasons = ['preloaded data: "Catalogue.prices" is 40 s old, and due every 30 s'];
  expect(perf.health()).toEqual({ status: 'degraded', reasons });
  expect(await of.prices()).toBe('prices');
  source = async () => 'new prices';
  await pass(60_000);
  expect(perf.health()).toEqual({ status: 'ok', reasons: [] });
});

it('health() tells of required data that was forgotten and cannot be loaded', async () => {
  const pass = fakeTime();
  const { perf, cache } = await cacheOf(Catalogue);
  source = dead;
  cache.invalidateAll(Catalogue);
  expect(perf.health().status).toBe('ok');
  await pass(10);
  expect(perf.health()).toEqual({
    status: 'degraded',
    reasons: ['preloaded data: "Catalogue.prices" cannot be loaded'],
  });
});
