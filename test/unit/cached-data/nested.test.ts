import { Injectable } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Cached, Preloaded } from '../../../src/entries/cache.js';
import { cacheOf, closeCaches, fakeTime } from '../../fixtures/cached-data.js';

const MINUTE = 60_000;
let loads: number;
let isDead: boolean;
let hangs: boolean;
beforeEach(() => {
  loads = 0;
  isDead = false;
  hangs = false;
});
afterEach(closeCaches);

@Injectable()
class Nested {
  @Cached({ ttlMs: MINUTE, staleMs: MINUTE })
  async inner() {
    if (isDead) throw new Error('dead');
    return (loads += 1);
  }

  @Cached({ ttlMs: MINUTE })
  async outer() {
    return `of ${await this.inner()}`;
  }

  @Cached({ ttlMs: MINUTE })
  async later() {
    await Promise.resolve();
    return `of ${await this.inner()}`;
  }

  @Cached({ ttlMs: MINUTE, batch: true })
  async items(ids: readonly string[]) {
    const inner = await this.inner();
    return ids.map((id) => `${id} of ${inner}`);
  }

  @Cached({ ttlMs: MINUTE, staleMs: MINUTE, waitMs: 100 })
  async patient() {
    if (hangs) await new Promise(() => {});
    return (loads += 1);
  }

  @Cached({ ttlMs: MINUTE })
  async ofPatient() {
    return `of ${await this.patient()}`;
  }

  @Preloaded({ everyMs: 10 * MINUTE })
  async all() {
    return 'all';
  }

  @Cached({ ttlMs: MINUTE })
  async some() {
    return [await this.all(), (loads += 1)];
  }
}

describe('a cached value that is made of another', () => {
  it.each([
    ['in a method that awaits nothing before', (of: Nested) => of.outer(), 'of 1', 'of 2'],
    ['in a batch', async (of: Nested) => (await of.items(['a']))[0], 'a of 1', 'a of 2'],
    ['in a method that has awaited something', (of: Nested) => of.later(), 'of 1', 'of 2'],
  ] as const)(
    'is no older than either allows, %s: bounds do not add up (nitro#1950)',
    async (_where, ask, first, next) => {
      const { of } = await cacheOf(Nested);
      const pass = fakeTime();
      await of.inner();
      await pass(MINUTE - 1);
      expect(await ask(of)).toBe(first);
      await pass(1);
      // Its own is over; the other is stale, and loaded meanwhile.
      await ask(of);
      await pass(0);
      expect(await ask(of)).toBe(next);
      expect(loads).toBe(2);
    },
  );

  it('is not kept while the other is stale, and never older than the longer bound', async () => {
    const { of } = await cacheOf(Nested);
    const pass = fakeTime();
    await of.inner();
    isDead = true;
    await pass(MINUTE);
    expect(await of.outer()).toBe('of 1');
    await pass(MINUTE - 1);
    expect(await of.outer()).toBe('of 1');
    await pass(1);
    await expect(of.outer()).rejects.toThrow('dead');
  });

  it('is no older either where the other was waited for, and then served stale', async () => {
    const { of } = await cacheOf(Nested);
    const pass = fakeTime();
    await of.patient();
    await pass(2 * MINUTE - 1_000);
    hangs = true;
    const asked = of.ofPatient();
    await pass(100);
    expect(await asked).toBe('of 1');
    await pass(900);
    const again = expect(of.ofPatient()).rejects.toThrow('PERF_ERR_LOAD_TIMEOUT');
    await pass(10_000);
    await again;
  });

  it('is fresh for its own time where the other is preloaded', async () => {
    const { of } = await cacheOf(Nested);
    const pass = fakeTime();
    await pass(9 * MINUTE - 1);
    expect(await of.some()).toEqual(['all', 1]);
    await pass(MINUTE - 10);
    expect(await of.some()).toEqual(['all', 1]);
    await pass(10);
    expect(await of.some()).toEqual(['all', 2]);
  });
});
