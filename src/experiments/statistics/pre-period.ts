import {
  effectiveDegrees,
  estimateMean,
  meanVariance,
  ratioMean,
  type Arm,
  type Estimate,
  type RatioMean,
} from '../../core/statistics/ratio-mean.js';

/** The least share of units, in each arm, that must have been seen before the experiment. */
const LEAST_SHARE_SEEN_BEFORE = 0.5;

interface Pair<T> {
  control: T;
  treatment: T;
}

/**
 * CUPED (Deng, Xu, Kohavi & Walker 2013): subtracts from each arm's mean the part that its units' values before the experiment explain,
 * θ = Cov(Y, X) / Var(X) pooled within the arms, of the linearised ratio. A new unit counts as average.
 */
export function adjustByPrePeriod(arms: Pair<Arm>, ratios: Pair<RatioMean>): Pair<Estimate> {
  const isKnown = seenBefore(arms.control) && seenBefore(arms.treatment);
  const before = { control: readBefore(arms.control), treatment: readBefore(arms.treatment) };
  const fit = isKnown ? regression(ratios, before) : null;
  if (fit === null) return { control: estimateMean(ratios.control), treatment: estimateMean(ratios.treatment) };
  const count = before.control.count + before.treatment.count;
  // Centred on both arms together: an arm that was slow before keeps its distance, which is what is corrected.
  const center = (before.control.mean * before.control.count + before.treatment.mean * before.treatment.count) / count;
  return {
    control: adjusted(ratios.control, before.control, center, fit),
    treatment: adjusted(ratios.treatment, before.treatment, center, fit),
  };
}

const readBefore = (arm: Arm): RatioMean =>
  ratioMean(arm.map(({ beforeCount, beforeSum }) => ({ count: beforeCount, sum: beforeSum })));

function seenBefore(arm: Arm): boolean {
  const seen = arm.filter(({ beforeCount }) => beforeCount > 0).length;
  return seen >= 2 && seen >= arm.length * LEAST_SHARE_SEEN_BEFORE;
}

/** A unit with more of Σx² than this chooses θ for itself: where it has half of the requests, 9 % false positives. */
const MOST_OF_ONE_UNIT = 0.5;

interface Regression {
  theta: number;
  /** The factor by which estimating θ from the same units raises the variance of the difference; 1 with many units. */
  inflation: number;
}

/** Null when the pre-period explains nothing, is the same for every unit, or is that of one unit. */
function regression(y: Pair<RatioMean>, x: Pair<RatioMean>): Regression | null {
  let products = 0;
  let squares = 0;
  let largest = 0;
  for (const arm of ['control', 'treatment'] as const) {
    const { residuals } = x[arm];
    for (let i = 0; i < residuals.length; i++) {
      const square = residuals[i]! ** 2;
      products += y[arm].residuals[i]! * residuals[i]!;
      squares += square;
      largest = Math.max(largest, square);
    }
  }
  if (products === 0 || squares === 0 || largest > MOST_OF_ONE_UNIT * squares) return null;
  // Analysis of covariance (Fisher 1932): one degree of freedom less, and an error of θ times the arms' distance.
  const units = y.control.units + y.treatment.units;
  const distance = x.treatment.mean - x.control.mean;
  const ofTheta = (distance * distance) / squares / (1 / y.control.units + 1 / y.treatment.units);
  return { theta: products / squares, inflation: ((units - 2) / (units - 3)) * (1 + ofTheta) };
}

function adjusted(ratio: RatioMean, before: RatioMean, center: number, { theta, inflation }: Regression): Estimate {
  const residuals = ratio.residuals.map((residual, i) => residual - theta * before.residuals[i]!);
  return {
    mean: ratio.mean - theta * (before.mean - center),
    variance: meanVariance(residuals, ratio.shares, ratio.mean) * inflation,
    // The degree of freedom that θ takes, half from each arm.
    degrees: effectiveDegrees(ratio.shares) - 0.5,
    units: ratio.units,
  };
}
