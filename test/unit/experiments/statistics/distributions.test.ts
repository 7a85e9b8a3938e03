import { describe, expect, it } from 'vitest';
import jstat from 'jstat';
import {
  betaRatio,
  logGamma,
  normalQuantile,
  normalUpperTail,
  studentQuantile,
  studentUpperTail,
  upperGammaRatio,
} from '../../../../src/core/statistics/distributions.js';

const { jStat } = jstat;
const relative = (a: number, b: number): number => Math.abs(a - b) / Math.abs(b);

describe('distributions', () => {
  // jstat itself is off by 3e-6 at 100,000 degrees of freedom.
  const DEGREES = [1, 2, 3.7, 8, 17.3, 60, 998.5];

  it('agree with jstat on the critical values of t', () => {
    for (const degrees of DEGREES) {
      for (const tail of [0.4, 0.1, 0.025, 0.005, 1e-4]) {
        expect(relative(studentQuantile(tail, degrees), jStat.studentt.inv(1 - tail, degrees))).toBeLessThan(1e-7);
      }
    }
  });

  it('agree with jstat on the tails of t and normal', () => {
    for (const x of [-3, -0.5, 0, 0.3, 1.96, 4]) {
      for (const degrees of DEGREES) {
        expect(studentUpperTail(x, degrees)).toBeCloseTo(1 - jStat.studentt.cdf(x, degrees), 7);
      }
      expect(normalUpperTail(x)).toBeCloseTo(1 - jStat.normal.cdf(x, 0, 1), 9);
    }
  });

  // NIST/SEMATECH e-Handbook 1.3.6.7; the digits beyond the table by Simpson integration of the density.
  it('give the values of the printed tables', () => {
    expect(studentQuantile(0.025, 1)).toBeCloseTo(12.706204736432095, 9);
    expect(studentQuantile(0.025, 10)).toBeCloseTo(2.228138851986275, 12);
    expect(normalQuantile(0.025)).toBeCloseTo(1.959963984540054, 12);
    expect(relative(normalUpperTail(8), 6.220960574271785e-16)).toBeLessThan(1e-13);
  });

  it('are inverted by their quantiles far into the tail', () => {
    for (const degrees of [1, 2.5, 30, 5_000, 200_000]) {
      for (const tail of [0.5, 0.3, 1e-6, 1e-12]) {
        expect(relative(studentUpperTail(studentQuantile(tail, degrees), degrees), tail)).toBeLessThan(1e-9);
        expect(studentQuantile(1 - tail, degrees) + studentQuantile(1 - (1 - tail), degrees)).toBe(0);
      }
    }
  });

  it('join without a step where t is read from the normal distribution', () => {
    expect(studentQuantile(0.025, 99_999)).toBeCloseTo(studentQuantile(0.025, 100_001), 8);
  });
});

it('the incomplete gamma and beta ratios agree with jstat over their range', () => {
  for (const a of [0.05, 0.5, 1, 2.25, 7, 60]) {
    expect(relative(1 + logGamma(a), 1 + jStat.gammaln(a))).toBeLessThan(1e-11);
    for (const x of [0.01, 0.3, 0.9]) {
      expect(betaRatio(x, a, 0.5)).toBeCloseTo(jStat.ibeta(x, a, 0.5), 7);
      expect(upperGammaRatio(a, x * 10)).toBeCloseTo(1 - jStat.lowRegGamma(a, x * 10), 9);
    }
  }
});
