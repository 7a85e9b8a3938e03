import { logGamma, normalQuantile, normalUpperTail, studentQuantile, studentUpperTail } from './distributions.js';
import type { Estimate } from './ratio-mean.js';

/** A difference, its standard error, and the degrees of freedom of that error. */
export interface Lift {
  delta: number;
  standardError: number;
  degrees: number;
  /** The p-value of the rarest of all ways to deal these units to the variants: no test can have a smaller one. */
  leastPValue: number;
}

/** An interval and a two-sided test of one lift. */
export interface Inference {
  ci: readonly [number, number];
  pValue: number;
  minimumDetectableEffect: number;
}

/** z(0.8): how many standard errors beyond the test's bound an effect must lie to be found 80 times in 100 (Cohen 1988). */
const POWER_Z = 0.8416212335729143;
/** Two means that agree to this many digits are equal: what is left is rounding. */
const ROUNDING = 1e-12;

/** A mean whose standard error is a smaller share of it is well known. */
const WELL_KNOWN = 0.1;
/** A smaller ratio is a fall that the delta method takes for too certain where the control is not well known. */
const GREAT_FALL = 0.5;

/** The ratio for the spread of a relative difference: the observed one, as in the delta method, but 1 near 0, where six errors against one would be a proof. */
export const ratioOfSpread = (ratio: number, relativeControlError: number): number =>
  ratio === 0 || (Math.abs(ratio) < GREAT_FALL && relativeControlError > WELL_KNOWN) ? 1 : ratio;

/**
 * Δ = Rt/Rc - 1 of two independent means, Var = Vt/Rc² + Rt²·Vc/Rc⁴ by the delta method (GrowthBook and Eppo, statistics pages), with
 * {@link ratioOfSpread} for Rt/Rc, and ν = (Vt+Vc)² / (Vt²/νt + Vc²/νc) (Welch 1947). The control's mean must not be 0.
 */
export function relativeLift(control: Estimate, treatment: Estimate): Lift {
  const ratio = treatment.mean / control.mean;
  const relativeControlError = Math.sqrt(control.variance) / Math.abs(control.mean);
  const relativeTreatmentError = Math.sqrt(treatment.variance) / Math.abs(control.mean);
  const standardError = Math.hypot(
    relativeTreatmentError,
    ratioOfSpread(ratio, relativeControlError) * relativeControlError,
  );
  const degrees = welchDegrees(control, treatment);
  return {
    delta: computeDelta(ratio),
    standardError,
    degrees,
    leastPValue: leastPValue(control.units, treatment.units),
  };
}

/** A ratio of two means as a relative difference. */
export const computeDelta = (ratio: number): number => (Math.abs(ratio - 1) < ROUNDING ? 0 : ratio - 1);

/** Infinite when neither mean has a variance, 1 when one has no end. */
export function welchDegrees(control: Estimate, treatment: Estimate): number {
  const total = control.variance + treatment.variance;
  if (total === 0) return Infinity;
  if (total === Infinity) return 1;
  // Shares instead of squares of variances: those could underflow.
  const c = control.variance / total;
  const t = treatment.variance / total;
  return 1 / ((t * t) / treatment.degrees + (c * c) / control.degrees);
}

/** Two of all C(n, k) ways to choose who is treated are as extreme as can be: Fisher's randomisation test. */
export const leastPValue = (control: number, treatment: number): number =>
  Math.min(1, 2 * Math.exp(logGamma(control + 1) + logGamma(treatment + 1) - logGamma(control + treatment + 1)));

/** The test with a planned end: t distribution, detectable effect (t(1-α/2, ν) + z(0.8))·SE (Statsig, power analysis). */
export function fixedHorizon(lift: Lift, alpha: number): Inference {
  const critical = studentQuantile(alpha / 2, lift.degrees);
  return { ...bounded(lift, critical, lift.leastPValue <= alpha), pValue: twoSided(lift) };
}

/** Interval and detectable effect of a test whose bound is `critical` standard errors. `isCertain`: whether units without any spread are enough. */
export function bounded(
  { delta, standardError }: Lift,
  critical: number,
  isCertain: boolean,
): Omit<Inference, 'pValue'> {
  if (standardError > 0) {
    const margin = critical * standardError;
    return { ci: [delta - margin, delta + margin], minimumDetectableEffect: margin + POWER_Z * standardError };
  }
  return isCertain
    ? { ci: [delta, delta], minimumDetectableEffect: 0 }
    : { ci: [-Infinity, Infinity], minimumDetectableEffect: Infinity };
}

/** P(|T| > |Δ|/SE). */
export function twoSided({ delta, standardError, degrees, leastPValue }: Lift): number {
  if (delta === 0) return 1;
  if (standardError === 0) return leastPValue;
  return Math.min(1, 2 * studentUpperTail(Math.abs(delta) / standardError, degrees));
}

/** A mean of what cannot be negative cannot fall by more than all of it. An unbounded interval stays unbounded. */
export function notBelow<T extends Omit<Inference, 'pValue'>>(least: number, inference: T): T {
  const [low, high] = inference.ci;
  return low === -Infinity ? inference : { ...inference, ci: [Math.max(least, low), Math.max(least, high)] };
}

/** The number of units at which the bound is tightest; fixed, because it must not depend on what is seen. */
const TUNED_FOR_UNITS = 200;

/**
 * The test that may be repeated as data come in: B = √[(t+ρ)/t · ln((t+ρ)/(ρα²))]·SE bounds the error of all tests together by α (Robbins
 * 1970; Waudby-Smith et al. 2021), ρ = N/(ln ln(e/α²) - 2 ln α) (Eppo, GrowthBook). With few units it is widened to the t distribution's.
 */
export function anytimeValid(lift: Lift, units: number, alpha: number): Inference {
  const logAlpha = Math.log(alpha);
  const rho = TUNED_FOR_UNITS / (Math.log(1 - 2 * logAlpha) - 2 * logAlpha);
  const growth = (units + rho) / units;
  const logRatio = Math.log((units + rho) / rho);
  const bound = Math.sqrt(growth * (logRatio - 2 * logAlpha));
  const critical = studentQuantile(normalUpperTail(bound), lift.degrees);
  // The bound solved for α: the least α at which the interval leaves out what has this p-value in a single test.
  const anytime = (pValue: number): number =>
    Math.min(1, Math.exp(logRatio / 2 - normalQuantile(pValue / 2) ** 2 / (2 * growth)));
  const isCertain = anytime(lift.leastPValue) <= alpha;
  return { ...bounded(lift, critical, isCertain), pValue: anytime(twoSided(lift)) };
}
