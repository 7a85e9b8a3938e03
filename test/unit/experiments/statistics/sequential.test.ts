import { describe, expect, it } from 'vitest';
import { compareVariants, type UnitTotals } from '../../../../src/experiments/statistics/compare-variants.js';
import { normal, randomOf } from '../../../fixtures/random.js';

const SEQUENTIAL = { control: 'off', treatment: 'on', sequential: true } as const;
const arm = (variant: string, units: number, meanMs: number, random: () => number): UnitTotals[] =>
  Array.from({ length: units }, (_, i) => {
    return { unit: `${variant} ${i}`, variant, count: 10, sum: 10 * meanMs * Math.exp(normal(random)) };
  });

describe('looks before the planned end', () => {
  it('have no answer below 100 units with requests in each variant', () => {
    const random = randomOf(1);
    const [off, on] = [arm('off', 100, 10, random), arm('on', 300, 40, random)];
    const idle = { unit: 'idle', variant: 'off', count: 0, sum: 0 };
    expect(compareVariants([...off.slice(1), idle, ...on], SEQUENTIAL)).toMatchObject({
      control: { units: 100 },
      relativeDelta: 0,
      ci: [-Infinity, Infinity],
      pValue: 1,
      minimumDetectableEffect: Infinity,
    });
    expect(compareVariants([...off, ...on], SEQUENTIAL).pValue).toBeLessThan(0.001);
    expect(compareVariants([...off.slice(1), ...on], { ...SEQUENTIAL, sequential: false }).pValue).toBeLessThan(0.001);
  });

  it('alarm in 5 % of A/A experiments at most, also where one unit in ten is on and means are far from normal', () => {
    const random = randomOf(2);
    const experiments = 120;
    let alarms = 0;
    for (let run = 0; run < experiments; run++) {
      const [off, on] = [arm('off', 1_800, 50, random), arm('on', 200, 50, random)];
      const isFound = [2, 3, 4, 6, 8, 10, 14, 20, 30, 45, 70, 100, 140, 200].some(
        (units) => compareVariants([...off.slice(0, 9 * units), ...on.slice(0, units)], SEQUENTIAL).pValue <= 0.05,
      );
      if (isFound) alarms += 1;
    }
    expect(alarms / experiments).toBeLessThanOrEqual(0.05);
  });
});
