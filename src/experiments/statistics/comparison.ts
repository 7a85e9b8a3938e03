/** One randomised unit (a user, a pod, a bucket of users): its total of a metric. */
export interface UnitTotals {
  unit: string;
  variant: string;
  /** Observations, for example successful requests. */
  count: number;
  /** Their sum, for example milliseconds. */
  sum: number;
  /** The same unit before the experiment began: narrows the interval by CUPED. Both or none. */
  beforeCount?: number;
  beforeSum?: number;
}

export interface CompareOptions {
  /** Name of the variant to compare with. */
  control: string;
  /** Name of the variant that is compared. */
  treatment: string;
  /** Error probability of the interval and the test, between 0 and 1. @default 0.05 */
  alpha?: number;
  /** For people who look before the planned end: interval and p-value hold however often one looks. @default false */
  sequential?: boolean;
  /**
   * Share of the units that the treatment should have; null when unknown, and then the sample ratio is not checked.
   * @default 0.5
   */
  treatmentShare?: number | null;
}

/** What one variant has shown. */
export interface VariantMean {
  units: number;
  count: number;
  /** Sum over count, as observed: warm-up included, not adjusted by CUPED. 0 when nothing was observed. */
  mean: number;
}

export interface SampleRatio {
  pValue: number;
  /** The split is not the one that was asked for (p < 0.001): do not believe the comparison. */
  suspect: boolean;
}

/** Treatment against control. Every number is finite or an infinite bound; never NaN. */
export interface Comparison {
  control: VariantMean;
  treatment: VariantMean;
  /** Treatment over control, minus 1: -0.049 is 4.9 % less. */
  relativeDelta: number;
  /** Of `relativeDelta`, at 1 - alpha. Never below -1 where no sum is negative. Without enough data: the whole line. */
  ci: readonly [number, number];
  /** Two-sided, of "no difference". */
  pValue: number;
  /** The smallest relative change that would be found in 80 % of experiments like this one. */
  minimumDetectableEffect: number;
  sampleRatioMismatch: SampleRatio;
}
