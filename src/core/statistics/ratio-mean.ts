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

/** The least share of units, in each arm, that must have been seen before the experiment. */
const LEAST_SHARE_SEEN_BEFORE = 0.5;

/** The covariate of one arm: per unit its distance from the pooled mean of the pre-period, and their average. */
interface Covariate {
  values: Float64Array;
  average: number;
}

interface Pair<T> {
  control: T;
  treatment: T;
}

/**
 * CUPED (Deng, Xu, Kohavi & Walker 2013): takes off each arm's mean what its units' values before the experiment
 * explain, θ = Cov(Y, X) / Var(X) pooled within the arms. Ratio metrics are linearised first, as by the delta method.
 * A unit that was not seen before counts as average. Without a pre-period this is the plain estimate.
 */
export function adjustByPrePeriod(arms: Pair<Arm>, ratios: Pair<RatioMean>): Pair<Estimate> {
  const x = covariates(arms);
  const fit = x === null ? null : regression(ratios, x);
  if (x === null || fit === null)
    return { control: estimateOf(ratios.control), treatment: estimateOf(ratios.treatment) };
  return { control: adjusted(ratios.control, x.control, fit), treatment: adjusted(ratios.treatment, x.treatment, fit) };
}

function covariates({ control, treatment }: Pair<Arm>): Pair<Covariate> | null {
  if (!seenBefore(control) || !seenBefore(treatment)) return null;
  let count = 0;
  let sum = 0;
  for (const arm of [control, treatment]) {
    for (const row of arm) {
      count += row.beforeCount;
      sum += row.beforeSum;
    }
  }
  // Centred on both arms together: an arm that was slow before keeps its distance, which is what is corrected.
  const mean = sum / count;
  const averageCount = count / (control.length + treatment.length);
  const covariateOf = (arm: Arm): Covariate => {
    const values = Float64Array.from(arm, (row) => (row.beforeSum - mean * row.beforeCount) / averageCount);
    return { values, average: values.reduce((total, value) => total + value, 0) / values.length };
  };
  return { control: covariateOf(control), treatment: covariateOf(treatment) };
}

function seenBefore(arm: Arm): boolean {
  let seen = 0;
  for (const row of arm) if (row.beforeCount > 0) seen += 1;
  return seen >= 2 && seen >= arm.length * LEAST_SHARE_SEEN_BEFORE;
}

interface Regression {
  theta: number;
  /** What estimating θ from the same units adds to the variance of the difference; 1 with many units. */
  inflation: number;
}

/** Null when the pre-period explains nothing, or is the same for every unit. */
function regression(y: Pair<RatioMean>, x: Pair<Covariate>): Regression | null {
  let products = 0;
  let squares = 0;
  for (const arm of ['control', 'treatment'] as const) {
    const { values, average } = x[arm];
    for (let i = 0; i < values.length; i++) {
      products += y[arm].residuals[i]! * (values[i]! - average);
      squares += (values[i]! - average) ** 2;
    }
  }
  if (products === 0 || squares === 0) return null;
  // Analysis of covariance (Fisher 1932): one degree of freedom less, and an error of θ times the arms' distance.
  const units = y.control.units + y.treatment.units;
  const distance = x.treatment.average - x.control.average;
  const ofTheta = (distance * distance) / squares / (1 / y.control.units + 1 / y.treatment.units);
  return { theta: products / squares, inflation: ((units - 2) / (units - 3)) * (1 + ofTheta) };
}

function adjusted(ratio: RatioMean, x: Covariate, { theta, inflation }: Regression): Estimate {
  const residuals = ratio.residuals.map((residual, i) => residual - theta * (x.values[i]! - x.average));
  return {
    mean: ratio.mean - theta * x.average,
    variance: meanVariance(residuals, ratio.mean) * inflation,
    // The degree of freedom that θ takes, half from each arm.
    degrees: ratio.units - 1.5,
    units: ratio.units,
  };
}
