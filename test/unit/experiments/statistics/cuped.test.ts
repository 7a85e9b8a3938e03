import { describe, expect, it } from 'vitest';
import type { Arm } from '../../../../src/core/statistics/ratio-mean.js';
import { adjustByPrePeriod } from '../../../../src/experiments/statistics/pre-period.js';
import { ratioMean } from '../../../../src/core/statistics/ratio-mean.js';

/** One request a unit in each period: then a unit's value is its sum. */
const arm = (pairs: readonly (readonly [value: number, before: number | null])[]): Arm =>
  pairs.map(([sum, before]) => ({
    count: 1,
    sum,
    beforeCount: before === null ? 0 : 1,
    beforeSum: before ?? 0,
  }));
const adjusted = (control: Arm, treatment: Arm) =>
  adjustByPrePeriod({ control, treatment }, { control: ratioMean(control), treatment: ratioMean(treatment) });

describe('the adjustment by the pre-period', () => {
  const before = [9, 12, 10, 14, 11, 10];
  const noise = [0.1, -0.2, 0.2, 0.1, -0.1, -0.1];
  const control = arm(before.map((x, i) => [2 * x + noise[i]!, x]));
  /** Units that were slower before by `shift`, and are faster now by 3 than that explains. */
  const treatment = (shift: number): Arm => arm(before.map((x, i) => [2 * (x + shift) - 3 + noise[5 - i]!, x + shift]));

  it('takes off what an arm’s slower units explain', () => {
    const plain = ratioMean(treatment(1)).mean - ratioMean(control).mean;
    const fair = adjusted(control, treatment(1));
    expect(plain).toBeCloseTo(-1, 10);
    expect(fair.treatment.mean - fair.control.mean).toBeCloseTo(-3, 1);
  });

  it('pays for estimating θ by how far the arms were apart: (1 + d²/Σx²/(1/n+1/n)), as the analysis of covariance does', () => {
    const [together, apart] = [adjusted(control, treatment(0)), adjusted(control, treatment(2))];
    const mean = before.reduce((sum, x) => sum + x, 0) / before.length;
    const squares = 2 * before.reduce((sum, x) => sum + (x - mean) ** 2, 0);
    const expected = 1 + 2 ** 2 / squares / (2 / before.length);
    expect(apart.control.variance / together.control.variance).toBeCloseTo(expected, 8);
  });

  it('leaves the plain means where fewer than half of an arm’s units were seen before', () => {
    const strangers = (known: number): Arm => arm(before.map((x, i) => [2 * x - 3, i < known ? x : null]));
    const plain = ratioMean(strangers(2));
    expect(adjusted(control, strangers(2)).treatment.mean).toBe(plain.mean);
    expect(adjusted(control, strangers(3)).treatment.mean).not.toBe(plain.mean);
  });
});
