import { describe, expect, it } from 'vitest';
import { compareVariants, type UnitTotals } from '../../../../src/experiments/statistics/compare-variants.js';
import { drawUnits } from '../../../fixtures/experiments/simulate.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';
import { binomial } from '../../../fixtures/random.js';

const ON_OFF = { control: 'off', treatment: 'on' } as const;
const row = (unit: string, variant: string, count: number, sum: number): UnitTotals => ({ unit, variant, count, sum });

describe('compareVariants', () => {
  it('compares the sums over the counts, not the averages of the units', () => {
    const units = [row('a', 'off', 1, 100), row('b', 'off', 9, 1_800), row('c', 'on', 5, 500), row('d', 'on', 5, 400)];
    const { control, treatment, relativeDelta } = compareVariants(units, ON_OFF);
    expect(control).toEqual({ units: 2, count: 10, mean: 190 });
    expect(treatment).toEqual({ units: 2, count: 10, mean: 90 });
    expect(relativeDelta).toBeCloseTo(90 / 190 - 1, 14);
  });

  it('adds up the rows of one unit, so that requests cannot pass for units', () => {
    const random = new SeededRandom(7);
    const perRequest = Array.from({ length: 400 }, (_, i) => {
      const variant = i % 2 === 0 ? 'on' : 'off';
      return row(`${variant} ${i % 8}`, variant, 1, 10 * random.logNormal(0.5));
    });
    expect(compareVariants(perRequest, ON_OFF).control.units).toBe(4);
    expect(compareVariants(perRequest, ON_OFF).treatment.units).toBe(4);
  });

  it('does not depend on the order of the rows, and turns around with the variants', () => {
    const units = drawUnits(new SeededRandom(3), { unitsPerArm: 12, unitEffect: 0.1, effect: -0.2 });
    const options = { control: 'control', treatment: 'treatment' };
    const forth = compareVariants(units, options);
    expect(compareVariants(units.toReversed(), options).pValue).toBeCloseTo(forth.pValue, 12);
    const back = compareVariants(units, { control: 'treatment', treatment: 'control' });
    expect(1 + back.relativeDelta).toBeCloseTo(1 / (1 + forth.relativeDelta), 12);
  });

  it('does not take one error of the control for a proof where the treatment has none', () => {
    const errors = (of: number): UnitTotals[] =>
      Array.from({ length: 200 }, (_, i) =>
        row(`u${i}`, i % 2 === 0 ? 'off' : 'on', 100, i % 2 === 0 && i < 2 * of ? 1 : 0),
      );
    const few = compareVariants(errors(1), ON_OFF);
    expect(few.relativeDelta).toBe(-1);
    expect(few.pValue).toBeGreaterThan(0.2);
    expect(few.ci[1]).toBeGreaterThan(0);
    expect(compareVariants(errors(40), ON_OFF).pValue).toBeLessThan(0.001);
  });

  it.each([0, 1])('does not take a dozen errors of one user against %i for a proof', (inTreatment) => {
    const units = Array.from({ length: 200 }, (_, i) =>
      row(`u${i}`, i % 2 === 0 ? 'off' : 'on', 100, [12, inTreatment][i] ?? 0),
    );
    expect(compareVariants(units, ON_OFF).pValue).toBeGreaterThan(0.2);
  });

  it('finds few errors to differ in one of 20 A/A runs at most', () => {
    const random = new SeededRandom(7);
    const draw = (): number => binomial(100, 0.001, random.next);
    let found = 0;
    for (let run = 0; run < 400; run++) {
      const units = Array.from({ length: 100 }, (_, i) => row(`u${i}`, i % 2 === 0 ? 'off' : 'on', 100, draw()));
      if (compareVariants(units, ON_OFF).pValue < 0.05) found += 1;
    }
    expect(found / 400).toBeLessThan(0.06);
  });

  it('widens the interval for a smaller alpha', () => {
    const units = drawUnits(new SeededRandom(3), { unitsPerArm: 12, unitEffect: 0.1, effect: -0.2 });
    const width = (alpha: number): number => {
      const { ci } = compareVariants(units, { control: 'control', treatment: 'treatment', alpha });
      return ci[1] - ci[0];
    };
    expect(width(0.01)).toBeGreaterThan(width(0.05) * 1.2);
    expect(width(0.05)).toBeGreaterThan(width(0.2) * 1.2);
  });

  it.each([false, true])('rejects exactly where its interval leaves out 0 (sequential: %s)', (sequential) => {
    const noise = Array.from({ length: sequential ? 13 : 1 }, () => [3, -2, 1, -4, 2, 0, -1, 1]).flat();
    const at = (effect: number) =>
      compareVariants(
        noise.flatMap((x, i) => [row(`c${i}`, 'off', 1, 100 + x), row(`t${i}`, 'on', 1, 100 + effect - x)]),
        { ...ON_OFF, sequential },
      );
    let [low, high] = [0, 50];
    while (high - low > 1e-9) {
      const effect = (low + high) / 2;
      if (at(effect).pValue > 0.05) low = effect;
      else high = effect;
    }
    expect(at(high).ci[0]).toBeCloseTo(0, 6);
    expect(at(high * 1.01).ci[0]).toBeGreaterThan(0);
    expect(at(high * 0.99).ci[0]).toBeLessThan(0);
  });

  it('asks more of an effect when people may look whenever they like', () => {
    const units = drawUnits(new SeededRandom(3), { unitsPerArm: 150, unitEffect: 0.1, effect: -0.06 });
    const options = { control: 'control', treatment: 'treatment' };
    const [fixed, sequential] = [
      compareVariants(units, options),
      compareVariants(units, { ...options, sequential: true }),
    ];
    expect(sequential.ci[1] - sequential.ci[0]).toBeGreaterThan(1.2 * (fixed.ci[1] - fixed.ci[0]));
    expect(sequential.pValue).toBeGreaterThan(fixed.pValue);
  });

  it('finds an effect of its own minimum detectable size in 80 % of experiments', () => {
    const random = new SeededRandom(11);
    const world = { unitsPerArm: 40, unitEffect: 0.1, effect: 0 };
    const arms = { control: 'control', treatment: 'treatment' };
    let effect = 0;
    for (let run = 0; run < 100; run++) {
      effect += compareVariants(drawUnits(random, world), arms).minimumDetectableEffect / 100;
    }
    let found = 0;
    for (let run = 0; run < 500; run++) {
      const units = drawUnits(random, { ...world, effect });
      if (compareVariants(units, arms).pValue < 0.05) found += 1;
    }
    expect(found / 500).toBeGreaterThan(0.72);
    expect(found / 500).toBeLessThan(0.88);
  });
});
