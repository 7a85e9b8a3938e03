import type { Arm } from './arm.js';
import { estimateOf, ratioMean } from './ratio-mean.js';
import { leastPValue, twoSided, welchDegrees } from './relative-lift.js';

/** Two rates and whether they differ: for rates that may be 0, where a relative difference has no meaning. */
export interface AbsoluteDifference {
  control: number;
  treatment: number;
  /** Two-sided, of "no difference", by Welch's test on the delta method's variances; 1 with too little data. */
  pValue: number;
}

export function absoluteDifference(controlArm: Arm, treatmentArm: Arm): AbsoluteDifference {
  const c = estimateOf(ratioMean(controlArm));
  const t = estimateOf(ratioMean(treatmentArm));
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
