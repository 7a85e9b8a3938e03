import type { Arm } from './arm.js';
import { estimateOf, meanVariance, type Estimate, type RatioMean } from './ratio-mean.js';

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
  return {
    control: adjusted(ratios.control, x.control, fit),
    treatment: adjusted(ratios.treatment, x.treatment, fit),
  };
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
