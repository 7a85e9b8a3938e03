import type { Comparison, VariantMean } from './compare-variants.js';
import {
  effectiveDegrees,
  meanVariance,
  ratioMean,
  type RatioMean,
  type Row,
} from '../../core/statistics/ratio-mean.js';
import { deltaOf, fixedHorizon, type Lift, notBelow } from '../../core/statistics/inference.js';

export interface RowPair {
  control: Row;
  treatment: Row;
}

/** Below this many pairs the spread between them is a guess. */
const LEAST_PAIRS = 2;

/**
 * Compares by pair: what both slices of a pair share (the hour, the load, the pod) cancels. The lift's variance is the
 * jackknife's with the covariance kept, from one value per pair: e = residual_t/Rc - Rt/Rc²·residual_c
 * (the paired t test; Bojinov, Simchi-Levi & Zhao 2023 on switchbacks). Null when nothing can be said.
 */
export function comparePairs(pairs: readonly RowPair[], alpha: number): Comparison | null {
  const control = ratioMean(pairs.map((pair) => pair.control));
  const treatment = ratioMean(pairs.map((pair) => pair.treatment));
  if (pairs.length < LEAST_PAIRS || control.mean === 0 || control.count === 0 || treatment.count === 0) return null;
  const ratio = treatment.mean / control.mean;
  const perPair = treatment.residuals.map((value, i) => (value - ratio * control.residuals[i]!) / control.mean);
  const shares = treatment.shares.map((share, i) => (share + control.shares[i]!) / 2);
  const lift: Lift = {
    delta: deltaOf(ratio),
    standardError: Math.sqrt(meanVariance(perPair, shares, ratio)),
    degrees: effectiveDegrees(shares),
    // Each pair could have been dealt the other way round.
    leastPValue: 2 ** (1 - pairs.length),
  };
  return {
    control: meanOf(control),
    treatment: meanOf(treatment),
    relativeDelta: lift.delta,
    ...notBelow(-1, fixedHorizon(lift, alpha)),
    // Every pair has one slice of each: there is no split that could go wrong.
    sampleRatioMismatch: { pValue: 1, suspect: false },
  };
}

const meanOf = ({ units, count, mean }: RatioMean): VariantMean => ({ units, count, mean });
