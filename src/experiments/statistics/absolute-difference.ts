import type { Arm } from './arm.js';
import { meanVariance, ratioMean } from './ratio-mean.js';
import { twoSided, welchDegrees } from './relative-lift.js';

/** Two rates and whether they differ: for rates that may be 0, where a relative difference has no meaning. */
export interface AbsoluteDifference {
  control: number;
  treatment: number;
  /** Two-sided, of "no difference", by Welch's test on the delta method's variances; 1 with too little data. */
  pValue: number;
}

export function absoluteDifference(controlArm: Arm, treatmentArm: Arm): AbsoluteDifference {
  const control = ratioMean(controlArm);
  const treatment = ratioMean(treatmentArm);
  const means = { control: control.mean, treatment: treatment.mean };
  if (control.units < 2 || treatment.units < 2) return { ...means, pValue: 1 };
  const estimates = [control, treatment].map(({ residuals, mean, units }) => ({
    mean,
    variance: meanVariance(residuals, mean),
    degrees: units - 1,
  }));
  const [c, t] = estimates as [(typeof estimates)[0], (typeof estimates)[0]];
  const standardError = Math.sqrt(c.variance + t.variance);
  const delta = treatment.mean - control.mean;
  return { ...means, pValue: twoSided({ delta, standardError, degrees: welchDegrees(c, t) }) };
}
