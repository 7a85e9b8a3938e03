import { describe, expect, it } from 'vitest';
import jstat from 'jstat';
import { compareVariants } from '../../../../src/experiments/statistics/compare-variants.js';
import type { UnitTotals } from '../../../../src/experiments/statistics/compare-variants.js';
import { SeededRandom } from '../../../fixtures/experiments/seeded-random.js';
import { ARMS, drawUnits } from '../../../fixtures/experiments/simulate.js';

const { jStat } = jstat;

/** The textbook, units left out one by one, on jstat's distributions: shares no line with the implementation. */
function oracle(units: readonly UnitTotals[], alpha: number) {
  const arm = (variant: string) => {
    const rows = units.filter((unit) => unit.variant === variant);
    const [s, n] = [jStat.sum(rows.map((unit) => unit.sum)), jStat.sum(rows.map((unit) => unit.count))];
    const k = rows.length;
    const r = s / n;
    const without = rows.map(({ sum, count }) => (s - sum) / (n - count));
    const v = ((k - 1) / k) * jStat.sum(without.map((mean) => (mean - r) ** 2));
    const degrees = Math.max(1, n ** 2 / jStat.sumsqrd(rows.map((unit) => unit.count)) - 1);
    return { k, r, v, degrees };
  };
  const c = arm(ARMS.control);
  const t = arm(ARMS.treatment);
  const delta = t.r / c.r - 1;
  const error = Math.sqrt(t.v / c.r ** 2 + (t.r ** 2 * c.v) / c.r ** 4);
  const degrees = (t.v + c.v) ** 2 / (t.v ** 2 / t.degrees + c.v ** 2 / c.degrees);
  const critical = jStat.studentt.inv(1 - alpha / 2, degrees);
  const expected = (t.k + c.k) / 2;
  const chi = ((t.k - expected) ** 2 + (c.k - expected) ** 2) / expected;
  return {
    delta,
    low: delta - critical * error,
    high: delta + critical * error,
    p: 2 * (1 - jStat.studentt.cdf(Math.abs(delta) / error, degrees)),
    mde: (critical + jStat.normal.inv(0.8, 0, 1)) * error,
    ratioP: 1 - jStat.chisquare.cdf(chi, 1),
  };
}

describe('agreement with jstat to 1e-6', () => {
  const cases = [
    { unitsPerArm: 2, unitEffect: 0.1, effect: -0.3, alpha: 0.05 },
    { unitsPerArm: 5, unitEffect: 0.05, effect: 0, alpha: 0.1 },
    { unitsPerArm: 40, unitEffect: 0.1, effect: -0.049, alpha: 0.05 },
    { unitsPerArm: 700, unitEffect: 0.1, effect: 0.02, alpha: 0.01 },
  ];
  it.each(cases)('$unitsPerArm units an arm, alpha $alpha', ({ alpha, ...world }) => {
    // A lopsided experiment, so that Welch's degrees of freedom and the sample ratio have something to do.
    const units = drawUnits(new SeededRandom(world.unitsPerArm), world);
    units.push(
      ...drawUnits(new SeededRandom(99), { ...world, unitEffect: 0.3 })
        .filter((u) => u.variant === 'control')
        .map((u) => ({ ...u, unit: `more ${u.unit}` })),
    );
    const ours = compareVariants(units, { ...ARMS, alpha });
    const theirs = oracle(units, alpha);
    const near = (a: number, b: number): void => expect(Math.abs(a - b)).toBeLessThan(1e-6 * Math.max(1, Math.abs(b)));
    near(ours.relativeDelta, theirs.delta);
    near(ours.ci[0], theirs.low);
    near(ours.ci[1], theirs.high);
    near(ours.pValue, theirs.p);
    near(ours.minimumDetectableEffect, theirs.mde);
    near(ours.sampleRatioMismatch.pValue, theirs.ratioP);
  });
});

it('is the delta method where every unit has as many observations', () => {
  const random = new SeededRandom(4);
  const units = ['control', 'treatment'].flatMap((variant) =>
    Array.from({ length: 12 }, (_, i) => ({ unit: `${variant}${i}`, variant, count: 3, sum: 30 + random.normal() })),
  );
  const [c, t] = Object.values(ARMS).map((name) => {
    const means = units.filter(({ variant }) => variant === name).map(({ sum }) => sum / 3);
    return { mean: jStat.mean(means), variance: jStat.variance(means, true) / 12 };
  }) as [{ mean: number; variance: number }, { mean: number; variance: number }];
  const error = Math.sqrt(t.variance / c.mean ** 2 + (t.mean ** 2 * c.variance) / c.mean ** 4);
  const degrees = (t.variance + c.variance) ** 2 / ((t.variance ** 2 + c.variance ** 2) / 11);
  const { ci } = compareVariants(units, ARMS);
  expect((ci[1] - ci[0]) / 2).toBeCloseTo(jStat.studentt.inv(0.975, degrees) * error, 9);
});
