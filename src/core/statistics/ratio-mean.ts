/** The totals of one unit: what is randomised, or a window of time. */
export interface Row {
  count: number;
  sum: number;
  beforeCount: number;
  beforeSum: number;
}

/** The units of one side of a comparison. */
export type Arm = readonly Row[];

/** The ratio metric Σ sum / Σ count of an arm, with what each unit contributes to its error. */
export interface RatioMean {
  units: number;
  count: number;
  mean: number;
  /** Per unit: (sum - mean · count) / (average count). They add up to 0. */
  residuals: Float64Array;
  /** Per unit: its part of the count. They add up to 1. */
  shares: Float64Array;
}

/** The mean of a ratio metric over randomised units, by the delta method's residuals (Deng, Knoblich & Lu 2018, arXiv 1803.06336, eq. 4). */
export function ratioMean(arm: readonly Pick<Row, 'count' | 'sum'>[]): RatioMean {
  let count = 0;
  let sum = 0;
  for (const row of arm) {
    count += row.count;
    sum += row.sum;
  }
  const residuals = new Float64Array(arm.length);
  const shares = new Float64Array(arm.length);
  if (count === 0) return { units: arm.length, count, mean: 0, residuals, shares };
  const mean = sum / count;
  const averageCount = count / arm.length;
  for (let i = 0; i < arm.length; i++) {
    residuals[i] = (arm[i]!.sum - mean * arm[i]!.count) / averageCount;
    shares[i] = arm[i]!.count / count;
  }
  return { units: arm.length, count, mean, residuals, shares };
}

/** A mean and how well it is known. */
export interface Estimate {
  mean: number;
  /** The variance of the mean, not of one unit. */
  variance: number;
  degrees: number;
  units: number;
}

/** The mean with the spread of its units. */
export const estimateMean = ({ mean, residuals, shares, units }: RatioMean): Estimate => ({
  mean,
  variance: meanVariance(residuals, shares, mean),
  degrees: effectiveDegrees(shares),
  units,
});

/** Kish's effective number of units, 1 / Σ share² (1965), less 1: units of one size give their number less 1. */
export function effectiveDegrees(shares: Float64Array): number {
  let squares = 0;
  for (const share of shares) squares += share * share;
  return Math.max(1, 1 / squares - 1);
}

/** Rounding error of a residual relative to the mean; a spread below it is no spread. */
const ROUNDING = 1e-13;

/**
 * The jackknife variance of a mean (Tukey 1958): without a unit the mean moves by residual / (units · (1 - share)), so that a unit with
 * much of the count hides no spread. For units of one size this is s² / n.
 */
export function meanVariance(residuals: Float64Array, shares: Float64Array, mean: number): number {
  const units = residuals.length;
  let squares = 0;
  for (let i = 0; i < units; i++) {
    const others = 1 - shares[i]!;
    // One unit is all there is, up to rounding: the spread is unknown.
    if (others <= ROUNDING) return Infinity;
    squares += (residuals[i]! / others) ** 2;
  }
  const perUnit = (squares * (units - 1)) / (units * units);
  return Math.sqrt(perUnit) <= ROUNDING * Math.abs(mean) ? 0 : perUnit / units;
}
