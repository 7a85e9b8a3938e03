import type { Arm } from './arm.js';

/** The ratio metric Σ sum / Σ count of an arm, with what each unit contributes to its error. */
export interface RatioMean {
  units: number;
  count: number;
  mean: number;
  /** Per unit: (sum - mean · count) / (average count). They add up to 0. */
  residuals: Float64Array;
}

/**
 * The mean of a ratio metric over randomised units. The variance of the residuals over the number of units is the
 * delta method's [Var(S) - 2R·Cov(S,N) + R²·Var(N)] / (K·N̄²) in a form that does not cancel digits
 * (Deng, Knoblich & Lu 2018, arXiv 1803.06336, eq. 4).
 */
export function ratioMean(arm: Arm): RatioMean {
  let count = 0;
  let sum = 0;
  for (const row of arm) {
    count += row.count;
    sum += row.sum;
  }
  const residuals = new Float64Array(arm.length);
  if (count === 0) return { units: arm.length, count, mean: 0, residuals };
  const mean = sum / count;
  const averageCount = count / arm.length;
  for (let i = 0; i < arm.length; i++) residuals[i] = (arm[i]!.sum - mean * arm[i]!.count) / averageCount;
  return { units: arm.length, count, mean, residuals };
}

/** A mean and how well it is known. */
export interface Estimate {
  mean: number;
  /** Of the mean, not of one unit. */
  variance: number;
  /** Degrees of freedom of the variance. */
  degrees: number;
  units: number;
}

/** The mean with the spread of its units, one degree of freedom taken. */
export const estimateOf = ({ mean, residuals, units }: RatioMean): Estimate => ({
  mean,
  variance: meanVariance(residuals, mean),
  degrees: units - 1,
  units,
});

/** Rounding error of a residual relative to the mean; a spread below it is no spread. */
const ROUNDING = 1e-13;

/** The variance of a mean from residuals that add up to 0. Needs two units. */
export function meanVariance(residuals: Float64Array, mean: number): number {
  let squares = 0;
  for (const residual of residuals) squares += residual * residual;
  const units = residuals.length;
  const perUnit = squares / (units - 1);
  return Math.sqrt(perUnit) <= ROUNDING * Math.abs(mean) ? 0 : perUnit / units;
}
