import { Injectable, Logger } from '@nestjs/common';
import { afterEach, expect, it, vi } from 'vitest';
import { Preloaded } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches, fakeTime, gate } from '../../fixtures/cached-data.js';

afterEach(async () => {
  vi.restoreAllMocks();
  await closeCaches();
});

const first = gate<string>();
let source = (): Promise<string> => first.passed;
let loads = 0;

@Injectable()
class Catalogue {
  @Preloaded({ everyMs: 30_000, timeoutMs: 5_000, required: false })
  rates() {
    loads += 1;
    return source();
  }
}

it('a preloaded value that comes after `timeoutMs` serves, and the next load is due `everyMs` later', async () => {
  const lines: string[] = [];
  vi.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void lines.push(String(line)));
  const pass = fakeTime();
  const { of } = await cacheOf(Catalogue);
  await pass(5_000);
  await expect(of.rates()).rejects.toThrow('PERF_ERR_NOT_LOADED');
  first.open('late');
  await pass(0);
  expect(await of.rates()).toBe('late');
  source = async () => Promise.reject(new Error('dead'));
  await pass(26_000);
  expect(loads).toBe(1);
  await pass(8_000);
  expect(loads).toBeGreaterThan(1);
  expect(await of.rates()).toBe('late');
  expect(lines).toEqual([
    expect.stringMatching(
      /^A load of "Catalogue\.rates" failed: .* was not loaded within 5000 ms.* There is no value\.$/,
    ),
    'A refresh of "Catalogue.rates" failed: dead. The last value serves on.',
  ]);
});
