import { armsOf, noData } from './comparison.js';
import type { CompareOptions, Comparison, SampleRatio, UnitCount, UnitTotals, VariantMean } from './comparison.js';
import { chiSquaredUpperTail } from '../../core/statistics/distributions.js';
import { anytimeValid, fixedHorizon, notBelow, relativeLift } from '../../core/statistics/inference.js';
import { type Arm, type RatioMean, adjustByPrePeriod, ratioMean } from '../../core/statistics/ratio-mean.js';

/** {@link CompareOptions} with its defaults taken. */
export type Plan = Required<Omit<CompareOptions, 'control' | 'treatment'>>;

/** Units are randomised, requests are not: fewer than two give no idea of the spread between them. */
const LEAST_UNITS = 2;

/**
 * Compares a treatment with a control by their totals per randomised unit: the relative difference of Σ sum / Σ count, an
 * interval, a test, and a check of the split. Uses CUPED when units carry a pre-period. With fewer than two units in a
 * variant, nothing observed, or a control mean of 0 the answer is a difference of 0, the whole line, and p = 1.
 *
 * @throws PERF_ERR_UNITS for input that is no data: NaN, negative counts, rows of a variant that was not named, equal
 * names, an alpha or share outside 0 to 1
 */
export function compareVariants(units: readonly UnitTotals[], options: CompareOptions): Comparison {
  const plan = planOf(options);
  const { control, treatment } = armsOf(units, options);
  return compareArms(control, treatment, plan, exactly(control.length), exactly(treatment.length));
}

const exactly = (units: number): UnitCount => ({ units, variance: 0 });

function planOf(options: CompareOptions): Plan {
  if (typeof options !== 'object' || options === null) throw noData('options', 'an object', options);
  const { control, treatment, alpha = 0.05, sequential = false, treatmentShare = 0.5 } = options;
  if (typeof control !== 'string') throw noData('options.control', 'the name of a variant', control);
  if (typeof treatment !== 'string' || treatment === control) {
    throw noData('options.treatment', 'the name of a variant other than the control', treatment);
  }
  if (!isShare(alpha)) throw noData('options.alpha', 'a number between 0 and 1', alpha);
  if (typeof sequential !== 'boolean') throw noData('options.sequential', '`true` or `false`', sequential);
  if (treatmentShare !== null && !isShare(treatmentShare)) {
    throw noData('options.treatmentShare', 'a number between 0 and 1, or null', treatmentShare);
  }
  return { alpha, sequential, treatmentShare };
}

const isShare = (value: unknown): value is number => typeof value === 'number' && value > 0 && value < 1;

/**
 * The comparison itself. Rows may be buckets of units: then the units are counted apart, because the spread comes from
 * buckets and the split from units.
 * @internal
 */
export function compareArms(
  controlArm: Arm,
  treatmentArm: Arm,
  plan: Plan,
  controlUnits: UnitCount,
  treatmentUnits: UnitCount,
): Comparison {
  const control = ratioMean(controlArm);
  const treatment = ratioMean(treatmentArm);
  const shown = {
    control: shownMean(control, controlUnits),
    treatment: shownMean(treatment, treatmentUnits),
    sampleRatioMismatch: sampleRatio(controlUnits, treatmentUnits, plan.treatmentShare),
  };
  const nothing = {
    relativeDelta: 0,
    ci: [-Infinity, Infinity] as const,
    pValue: 1,
    minimumDetectableEffect: Infinity,
  };
  if (!answers(control) || !answers(treatment)) return { ...shown, ...nothing };
  const estimate = adjustByPrePeriod({ control: controlArm, treatment: treatmentArm }, { control, treatment });
  if (control.mean === 0 || estimate.control.mean === 0) return { ...shown, ...nothing };
  const lift = relativeLift(estimate.control, estimate.treatment);
  if (!Number.isFinite(lift.delta) || !Number.isFinite(lift.standardError)) return { ...shown, ...nothing };
  const inference = plan.sequential
    ? anytimeValid(lift, control.units + treatment.units, plan.alpha)
    : fixedHorizon(lift, plan.alpha);
  const least = [...controlArm, ...treatmentArm].some(({ sum }) => sum < 0) ? -Infinity : -1;
  return { ...shown, relativeDelta: Math.max(least, lift.delta), ...notBelow(least, inference) };
}

const answers = (ratio: RatioMean): boolean => ratio.units >= LEAST_UNITS && ratio.count > 0;

const shownMean = (ratio: RatioMean, { units }: UnitCount): VariantMean => ({
  units: Math.round(units),
  count: ratio.count,
  mean: ratio.mean,
});

/** Alarm below this p-value (GrowthBook's default): one false alarm in a thousand experiments. */
const ALARM = 0.001;

/** Pearson's χ² test of the split (Fabijan et al. 2019). Counts that were estimated widen what chance explains. */
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
