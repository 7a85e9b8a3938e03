import type { SampleRatio } from './comparison.js';
import { chiSquaredUpperTail } from './distributions.js';

/** A number of units; estimated when it has a variance. */
export interface UnitCount {
  units: number;
  /** Of the estimate; 0 for a count. */
  variance: number;
}

/** Alarm below this p-value (GrowthBook's default): one false alarm in a thousand experiments. */
const ALARM = 0.001;

/**
 * Pearson's χ² test of the split between two variants against the share that was asked for (Fabijan et al. 2019,
 * "Diagnosing sample ratio mismatch"). Counts that were estimated widen what chance explains.
 */
export function sampleRatio(control: UnitCount, treatment: UnitCount, treatmentShare: number | null): SampleRatio {
  const units = control.units + treatment.units;
  if (treatmentShare === null || units === 0) return { pValue: 1, suspect: false };
  const controlShare = 1 - treatmentShare;
  const excess = treatment.units * controlShare - control.units * treatmentShare;
  const variance =
    units * treatmentShare * controlShare +
    controlShare * controlShare * treatment.variance +
    treatmentShare * treatmentShare * control.variance;
  const pValue = chiSquaredUpperTail((excess * excess) / variance, 1);
  return { pValue, suspect: pValue < ALARM };
}
