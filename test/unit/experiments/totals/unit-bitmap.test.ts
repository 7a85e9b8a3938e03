import { describe, expect, it } from 'vitest';
import { UnitBitmap } from '../../../../src/experiments/totals/unit-bitmap.js';
import { unitHash } from '../../../fixtures/experiments/totals.js';

function readBitmap(from: number, to: number): UnitBitmap {
  const bitmap = UnitBitmap.empty();
  for (let i = from; i < to; i++) bitmap.add(unitHash(`user-${i}`));
  return bitmap;
}

describe('the bitmap of units', () => {
  it('counts distinct units, exactly while they are few', () => {
    for (const units of [0, 1, 2, 10, 100]) {
      const bitmap = readBitmap(0, units);
      for (let i = 0; i < units; i++) bitmap.add(unitHash(`user-${i}`));
      expect(Math.round(bitmap.count().units)).toBe(units);
    }
  });

  it.each([1_000, 20_000, 750_000])('counts %s units within four of its own standard errors', (units) => {
    const { units: estimate, variance } = readBitmap(0, units).count();
    expect(Math.abs(estimate - units)).toBeLessThan(4 * Math.sqrt(variance));
    expect(Math.sqrt(variance) / units).toBeLessThan(0.02);
  });

  it('says whether a unit is new', () => {
    const bitmap = UnitBitmap.empty();
    expect([bitmap.add(unitHash('a')), bitmap.add(unitHash('b')), bitmap.add(unitHash('a'))]).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('counts a unit that two processes have seen once when they are merged', () => {
    const merged = readBitmap(0, 6_000);
    merged.merge(readBitmap(4_000, 10_000));
    expect(merged.toString()).toBe(readBitmap(0, 10_000).toString());
  });

  it('survives its own text form, and refuses another text', () => {
    const bitmap = readBitmap(0, 500);
    expect(UnitBitmap.parse(bitmap.toString())?.toString()).toBe(bitmap.toString());
    expect(UnitBitmap.parse('AAAA')).toBeNull();
  });

  it('says that its number is worth nothing when next to every bit is set', () => {
    expect(readBitmap(0, 850_000).count().variance).toBe(Infinity);
    const bitmap = UnitBitmap.empty();
    for (let i = 0; i < 2 ** 17; i++) bitmap.add((i << 15) >>> 0);
    expect(bitmap.count().units).toBeGreaterThan(1_500_000);
    expect(bitmap.count().units).toBeLessThan(Infinity);
    expect(bitmap.count().variance).toBe(Infinity);
  });
});
