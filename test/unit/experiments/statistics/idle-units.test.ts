import { describe, expect, it } from 'vitest';
import { compareVariants, type UnitTotals } from '../../../../src/experiments/statistics/compare-variants.js';
import { normal, randomOf } from '../../../fixtures/random.js';

const ON_OFF = { control: 'off', treatment: 'on' } as const;

/** Per arm so many units with requests of these means, and the rest of 20 without any. */
const arms = (means: { off: number[]; on: number[] }): UnitTotals[] =>
  (['off', 'on'] as const).flatMap((variant) =>
    Array.from({ length: 20 }, (_, i) => {
      const mean = means[variant][i];
      return { unit: `${variant} ${i}`, variant, count: mean === undefined ? 0 : 100, sum: 100 * (mean ?? 0) };
    }),
  );

describe('units without a request', () => {
  it('are no answer: one unit with requests is too few, however many have none', () => {
    const answer = compareVariants(arms({ off: [50], on: [55] }), ON_OFF);
    expect(answer).toMatchObject({
      control: { units: 20, count: 100, mean: 50 },
      treatment: { units: 20, count: 100, mean: 55 },
      relativeDelta: 0,
      ci: [-Infinity, Infinity],
      pValue: 1,
      minimumDetectableEffect: Infinity,
    });
  });

  it('add nothing to what the others say, and count for the split', () => {
    const means = { off: [50, 52, 47], on: [55, 61, 58, 59] };
    const all = arms(means);
    const withRequests = all.filter(({ count }) => count > 0);
    const [padded, plain] = [compareVariants(all, ON_OFF), compareVariants(withRequests, ON_OFF)];
    expect([padded.ci, padded.pValue, padded.relativeDelta]).toEqual([plain.ci, plain.pValue, plain.relativeDelta]);
    const lopsided = [...all, ...Array.from({ length: 40 }, (_, i) => ({ ...all.at(-1)!, unit: `more ${i}` }))];
    expect(compareVariants(lopsided, ON_OFF).sampleRatioMismatch.suspect).toBe(true);
  });

  it('are no proof where the others happen to agree: two against two are dealt so in one of three experiments', () => {
    expect(compareVariants(arms({ off: [50, 50], on: [55, 55] }), ON_OFF).pValue).toBeCloseTo(1 / 3, 9);
  });

  it('do not make chance significant', () => {
    const random = randomOf(3);
    const draw = (): number[] => [1, 2].map(() => 50 * Math.exp(0.3 * normal(random)));
    let found = 0;
    for (let run = 0; run < 1_000; run++) {
      if (compareVariants(arms({ off: draw(), on: draw() }), ON_OFF).pValue < 0.05) found += 1;
    }
    expect(found / 1_000).toBeLessThan(0.06);
  });
});
