import { studentQuantile, studentUpperTail } from './distributions.js';
import type { Estimate } from './ratio-mean.js';

/** A relative difference, its standard error, and the degrees of freedom of that error. */
export interface Lift {
  delta: number;
  standardError: number;
  degrees: number;
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

/**
 * Δ = Rt/Rc - 1 of two independent means, Var = Vt/Rc² + Rt²·Vc/Rc⁴ by the delta method (GrowthBook and Eppo, statistics
 * pages), Welch and Satterthwaite's degrees of freedom ν = (Vt+Vc)² / (Vt²/(Kt-1) + Vc²/(Kc-1)) (Welch 1947).
 * The control's mean must not be 0.
 */
export function relativeLift(control: Estimate, treatment: Estimate): Lift {
  const ratio = treatment.mean / control.mean;
  const relativeControlError = Math.sqrt(control.variance) / Math.abs(control.mean);
  const relativeTreatmentError = Math.sqrt(treatment.variance) / Math.abs(control.mean);
  const standardError = Math.hypot(relativeTreatmentError, ratio * relativeControlError);
  return { delta: deltaOf(ratio), standardError, degrees: welchDegrees(control, treatment) };
}

/** A ratio of two means as a relative difference. */
export const deltaOf = (ratio: number): number => (Math.abs(ratio - 1) < ROUNDING ? 0 : ratio - 1);

/** Infinite when neither mean has a variance. */
export function welchDegrees(control: Estimate, treatment: Estimate): number {
  const total = control.variance + treatment.variance;
  if (total === 0) return Infinity;
  // Shares instead of squares of variances: those could underflow.
  const c = control.variance / total;
  const t = treatment.variance / total;
  return 1 / ((t * t) / treatment.degrees + (c * c) / control.degrees);
}

/** The test with a planned end: t distribution, detectable effect (t(1-α/2, ν) + z(0.8))·SE (Statsig, power analysis). */
export function fixedHorizon(lift: Lift, alpha: number): Inference {
  return { ...bounded(lift, studentQuantile(alpha / 2, lift.degrees)), pValue: twoSided(lift) };
}

/** Interval and detectable effect of a test whose bound is `critical` standard errors. */
export function bounded({ delta, standardError }: Lift, critical: number): Omit<Inference, 'pValue'> {
  if (standardError === 0) return { ci: [delta, delta], minimumDetectableEffect: 0 };
  const margin = critical * standardError;
  return { ci: [delta - margin, delta + margin], minimumDetectableEffect: margin + POWER_Z * standardError };
}

/** P(|T| > |Δ|/SE). Without any error the difference is certain, or there is none. */
export function twoSided({ delta, standardError, degrees }: Lift): number {
  if (delta === 0) return 1;
  if (standardError === 0) return 0;
  return Math.min(1, 2 * studentUpperTail(Math.abs(delta) / standardError, degrees));
}
