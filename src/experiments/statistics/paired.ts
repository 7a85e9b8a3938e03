import { type Comparison, NO_DIFFERENCE, type VariantMean } from './compare-variants.js';
import {
  effectiveDegrees,
  estimateMean,
  meanVariance,
  ratioMean,
  type RatioMean,
  type Row,
} from '../../core/statistics/ratio-mean.js';
import {
  computeDelta,
  fixedHorizon,
  type Lift,
  notBelow,
  ratioOfSpread,
  twoSided,
} from '../../core/statistics/inference.js';
import type { AbsoluteDifference } from './absolute.js';

export interface RowPair {
  control: Row;
  treatment: Row;
}

/** Below this many pairs the spread between them is a guess. */
const LEAST_PAIRS = 2;

/**
 * Compares by pair: what both slices of a pair share (the hour, the load, the pod) cancels. The lift's variance is the
 * jackknife's with the covariance kept, from one value per pair: e = residual_t/Rc - Rt/Rc²·residual_c
 * (the paired t test; Bojinov, Simchi-Levi & Zhao 2023 on switchbacks). Null with too few pairs.
 */
export function comparePairs(pairs: readonly RowPair[], alpha: number): Comparison | null {
  if (pairs.length < LEAST_PAIRS) return null;
  const means = averagePairs(pairs);
  const { control, treatment } = means;
  const shown = {
    control: readMean(control),
    treatment: readMean(treatment),
    // Every pair has one slice of each: there is no split that could go wrong.
    sampleRatioMismatch: { pValue: 1, suspect: false },
  };
  if (control.mean === 0) return { ...shown, ...NO_DIFFERENCE };
  const ratio = treatment.mean / control.mean;
  const controlError = Math.sqrt(estimateMean(control).variance) / Math.abs(control.mean);
  const lift = liftPairs(means, computeDelta(ratio), ratioOfSpread(ratio, controlError), control.mean);
  return { ...shown, relativeDelta: lift.delta, ...notBelow(-1, fixedHorizon(lift, alpha)) };
}

/** Two rates by pair, the same test without the control's mean below the line: for rates that may be 0. */
export function pairedDifference(pairs: readonly RowPair[]): AbsoluteDifference {
  const means = averagePairs(pairs);
  const [control, treatment] = [means.control.mean, means.treatment.mean];
  const pValue = pairs.length < LEAST_PAIRS ? 1 : twoSided(liftPairs(means, treatment - control, 1, 1));
  return { control, treatment, pValue };
}

interface Means {
  control: RatioMean;
  treatment: RatioMean;
}

const averagePairs = (pairs: readonly RowPair[]): Means => ({
  control: ratioMean(pairs.map((pair) => pair.control)),
  treatment: ratioMean(pairs.map((pair) => pair.treatment)),
});

/** `delta` with the spread of (treatment - ratio · control) / unit between pairs. */
function liftPairs({ control, treatment }: Means, delta: number, ratio: number, unit: number): Lift {
  const perPair = treatment.residuals.map((value, i) => (value - ratio * control.residuals[i]!) / unit);
  const shares = treatment.shares.map((share, i) => (share + control.shares[i]!) / 2);
  return {
    delta,
    standardError: Math.sqrt(meanVariance(perPair, shares, ratio)),
    degrees: effectiveDegrees(shares),
    // Each pair could have been dealt the other way round.
    leastPValue: 2 ** (1 - perPair.length),
  };
}

const readMean = ({ units, count, mean }: RatioMean): VariantMean => ({ units, count, mean });
