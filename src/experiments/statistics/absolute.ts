import { anytimeValid, leastPValue, twoSided, welchDegrees } from '../../core/statistics/inference.js';
import { estimateMean, ratioMean, type Arm } from '../../core/statistics/ratio-mean.js';

/** Rows of units in each arm below which the asymptotic bound stops nothing. */
const LEAST_ROWS_TO_EXCEED = 30;

/** Whether the treatment's mean is above factor × control's + margin, by the anytime-valid bound. The control's mean may be 0. */
export function exceeds(
  controlArm: Arm,
  treatmentArm: Arm,
  { factor, margin, alpha }: { factor: number; margin: number; alpha: number },
): boolean {
  if (Math.min(controlArm.length, treatmentArm.length) < LEAST_ROWS_TO_EXCEED) return false;
  const plain = estimateMean(ratioMean(controlArm));
  const control = { ...plain, variance: plain.variance * factor * factor };
  const treatment = estimateMean(ratioMean(treatmentArm));
  const lift = {
    delta: treatment.mean - factor * control.mean - margin,
    standardError: Math.sqrt(control.variance + treatment.variance),
    degrees: welchDegrees(control, treatment),
    leastPValue: leastPValue(control.units, treatment.units),
  };
  return lift.delta > 0 && anytimeValid(lift, control.units + treatment.units, alpha).ci[0] > 0;
}

/** Two rates and whether they differ: for rates that may be 0, where a relative difference has no meaning. */
export interface AbsoluteDifference {
  control: number;
  treatment: number;
  /** Two-sided, of "no difference", by Welch's test on the delta method's variances; 1 with too little data. */
  pValue: number;
}

export function absoluteDifference(controlArm: Arm, treatmentArm: Arm): AbsoluteDifference {
  const c = estimateMean(ratioMean(controlArm));
  const t = estimateMean(ratioMean(treatmentArm));
  const means = { control: c.mean, treatment: t.mean };
  if (c.units < 2 || t.units < 2) return { ...means, pValue: 1 };
  const pValue = twoSided({
    delta: t.mean - c.mean,
    standardError: Math.sqrt(c.variance + t.variance),
    degrees: welchDegrees(c, t),
    leastPValue: leastPValue(c.units, t.units),
  });
  return { ...means, pValue };
}
