import { Injectable, Logger } from '@nestjs/common';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Level2Listener } from '../../../src/cached-data/level2.js';
import { Preloaded } from '../../../src/entries/cache.js';
import { answersOf, cacheOf, closeCaches, fakeTime, gate } from '../../fixtures/cached-data.js';
import { until } from '../../fixtures/until.js';

let source: () => Promise<string>;
let loads: number;
const dead = (): Promise<string> => Promise.reject(new Error('dead'));
beforeEach(() => {
  source = async () => 'prices';
  loads = 0;
});
afterEach(async () => {
  vi.restoreAllMocks();
  await closeCaches();
});

@Injectable()
class Catalogue {
  @Preloaded({ everyMs: 30_000, timeoutMs: 5_000 })
  prices() {
    return source();
  }
}
@Injectable()
class Rates {
  @Preloaded({ everyMs: 30_000, timeoutMs: 5_000, required: false })
  rates() {
    loads += 1;
    return source();
  }
}

it('health() is degraded while required preloaded data is overdue, and ok once it is loaded again', async () => {
  const pass = fakeTime();
  const { perf, of } = await cacheOf(Catalogue, {}, { providers: [Rates] });
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
  const { perf, cache } = await cacheOf(Catalogue, {}, { providers: [Rates] });
  source = dead;
  cache.invalidateAll(Catalogue);
  cache.invalidateAll(Rates);
  expect(perf.health().status).toBe('ok');
  await pass(10);
  const reasons = ['preloaded data: "Catalogue.prices" cannot be loaded'];
  expect(perf.health()).toEqual({ status: 'degraded', reasons });
});

it('a preloaded value that comes after `timeoutMs` serves, and the next load is due `everyMs` later', async () => {
  const lines: string[] = [];
  vi.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void lines.push(String(line)));
  const first = gate<string>();
  source = () => first.passed;
  const pass = fakeTime();
  const { of } = await cacheOf(Rates);
  await pass(5_000);
  await expect(of.rates()).rejects.toThrow('PERF_ERR_NOT_LOADED');
  first.open('late');
  await pass(0);
  expect(await of.rates()).toBe('late');
  source = dead;
  await pass(26_000);
  expect(loads).toBe(1);
  await pass(8_000);
  expect(loads).toBeGreaterThan(1);
  expect(await of.rates()).toBe('late');
  expect(lines).toEqual([
    expect.stringMatching(/^A load of "Rates\.rates" failed: .* was not loaded within 5000 ms.* There is no value\.$/),
    'A refresh of "Rates.rates" failed: dead. The last value serves on.',
  ]);
});

it('a preloaded value is loaded anew where invalidations may have been missed, and serves until then', async () => {
  const began: ReturnType<typeof gate<string>>[] = [];
  @Injectable()
  class Prices {
    @Preloaded({ everyMs: 60_000 })
    all() {
      began.push(gate());
      return began.at(-1)!.passed;
    }
  }
  let listener!: Level2Listener;
  const level2 = answersOf(
    async () => null,
    (heard) => (listener = heard),
  );
  const starting = cacheOf(Prices, { level2 });
  await until('the first load', () => began.length === 1);
  began[0]!.open('first');
  const { of } = await starting;
  listener.missed();
  await until('a second load', () => began.length === 2);
  listener.missed();
  await until('a third one', () => began.length === 3);
  began[1]!.open('too old');
  await new Promise((resolve) => setImmediate(resolve));
  expect(await of.all()).toBe('first');
  began[2]!.open('third');
  await until('its value', async () => (await of.all()) === 'third');
});
