import { getOrAdd } from '../../core/get-or-add.js';
import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import { normalUpperTail } from '../../core/statistics/distributions.js';
import { anytimeValid, fixedHorizon, notBelow, relativeLift } from '../../core/statistics/inference.js';
import { ratioMean, type Arm, type RatioMean, type Row } from '../../core/statistics/ratio-mean.js';
import { adjustByPrePeriod } from './pre-period.js';

/** One randomised unit (a user, a pod, a bucket of users): its total of a metric. */
export interface UnitTotals {
  unit: string;
  variant: string;
  /** Observations, for example successful requests. */
  count: number;
  /** Their sum, for example milliseconds. */
  sum: number;
  /** The unit before the experiment began, which narrows the interval (CUPED). Both or none. */
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
  /**
   * For reading before the planned end: interval and p-value are valid at every reading. The bound is asymptotic,
   * so there is no answer below 100 units with observations in each variant.
   * @default false
   */
  sequential?: boolean;
  /**
   * Share of the units that the treatment should have; null when unknown, and then the sample ratio is not checked.
   * @default 0.5
   */
  treatmentShare?: number | null;
}

/** One variant as observed. */
export interface VariantMean {
  units: number;
  count: number;
  /** Sum over count, as observed: warm-up included, not adjusted by CUPED. 0 when nothing was observed. */
  mean: number;
}

export interface SampleRatio {
  pValue: number;
  /** The split differs from the configured one (p < 0.001): do not trust the comparison. */
  suspect: boolean;
}

/** Treatment against control. Every number is finite or an infinite bound; never NaN. */
export interface Comparison {
  control: VariantMean;
  treatment: VariantMean;
  /** Treatment over control, minus 1: -0.049 is 4.9 % less. */
  relativeDelta: number;
  /** Interval of `relativeDelta` at 1 - alpha. Never below -1 where no sum is negative. Without enough data: -Infinity to Infinity. */
  ci: readonly [number, number];
  /** Two-sided, of "no difference". */
  pValue: number;
  /** The smallest relative change that would be found in 80 % of experiments like this one. */
  minimumDetectableEffect: number;
  sampleRatioMismatch: SampleRatio;
}

/** A number of units; estimated when it has a variance. */
export interface UnitCount {
  units: number;
  /** Variance of the estimate; 0 for a count, infinite where the estimate is worth nothing. */
  variance: number;
}

/** {@link CompareOptions} with its defaults taken. */
export type Plan = Required<Omit<CompareOptions, 'control' | 'treatment'>>;

/** Units are randomised, requests are not: fewer than two give no idea of the spread between them. */
const LEAST_UNITS = 2;
/** The anytime bound is asymptotic: with log-normal units (σ 1) 30 % of A/A tests alarm from 2 units on, 4 % from 100. */
const LEAST_UNITS_SEQUENTIAL = 100;

/**
 * Compares a treatment with a control by their totals per randomised unit: the relative difference of Σ sum / Σ count, an
 * interval, a test, and a check of the split. Uses CUPED when units carry a pre-period. A unit without an observation counts
 * for the split alone. With fewer than two units with observations in a variant (100 where `sequential`), or a control mean of 0, the
 * answer is a difference of 0, an interval from -Infinity to Infinity, and p = 1.
 *
 * @throws PERF_ERR_UNITS for invalid input: NaN, negative counts, rows of a variant that was not named, equal
 * names, an alpha or share outside 0 to 1
 */
export function compareVariants(units: readonly UnitTotals[], options: CompareOptions): Comparison {
  const plan = readPlan(options);
  const { control, treatment } = sortRows(units, options);
  return compareArms(control, treatment, plan, exactly(control.length), exactly(treatment.length));
}

const exactly = (units: number): UnitCount => ({ units, variance: 0 });

function readPlan(options: CompareOptions): Plan {
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
  const arms = { control: active(controlArm), treatment: active(treatmentArm) };
  const control = ratioMean(arms.control);
  const treatment = ratioMean(arms.treatment);
  const shown = {
    control: shownMean(control, controlUnits),
    treatment: shownMean(treatment, treatmentUnits),
    sampleRatioMismatch: sampleRatio(controlUnits, treatmentUnits, plan.treatmentShare),
  };
  const leastUnits = plan.sequential ? LEAST_UNITS_SEQUENTIAL : LEAST_UNITS;
  if (Math.min(control.units, treatment.units) < leastUnits) return { ...shown, ...NO_DIFFERENCE };
  const estimate = adjustByPrePeriod(arms, { control, treatment });
  if (control.mean === 0 || estimate.control.mean === 0) return { ...shown, ...NO_DIFFERENCE };
  const lift = relativeLift(estimate.control, estimate.treatment);
  if (!Number.isFinite(lift.delta) || !Number.isFinite(lift.standardError)) return { ...shown, ...NO_DIFFERENCE };
  const inference = plan.sequential
    ? anytimeValid(lift, control.units + treatment.units, plan.alpha)
    : fixedHorizon(lift, plan.alpha);
  const least = [...controlArm, ...treatmentArm].some(({ sum }) => sum < 0) ? -Infinity : -1;
  return { ...shown, relativeDelta: Math.max(least, lift.delta), ...notBelow(least, inference) };
}

/** The answer where too little is known for a relative difference. */
export const NO_DIFFERENCE = {
  relativeDelta: 0,
  ci: [-Infinity, Infinity],
  pValue: 1,
  minimumDetectableEffect: Infinity,
} as const;

/** A unit without an observation is part of the split, and not of the mean and its spread. */
const active = (arm: Arm): Arm => arm.filter(({ count }) => count > 0);

const shownMean = (ratio: RatioMean, { units }: UnitCount): VariantMean => ({
  units: Math.round(units),
  count: ratio.count,
  mean: ratio.mean,
});

/** Alarm below this p-value (GrowthBook's default): one false alarm in a thousand experiments. */
const ALARM = 0.001;

/** Pearson's χ² test of the split (Fabijan et al. 2019), with one degree of freedom: χ is normal. Estimated counts add their variance. */
export function sampleRatio(control: UnitCount, treatment: UnitCount, treatmentShare: number | null): SampleRatio {
  const units = control.units + treatment.units;
  if (treatmentShare === null || units === 0) return { pValue: 1, suspect: false };
  const controlShare = 1 - treatmentShare;
  const excess = treatment.units * controlShare - control.units * treatmentShare;
  const variance =
    units * treatmentShare * controlShare +
    controlShare * controlShare * treatment.variance +
    treatmentShare * treatmentShare * control.variance;
  const pValue = 2 * normalUpperTail(Math.abs(excess) / Math.sqrt(variance));
  return { pValue, suspect: pValue < ALARM };
}

/** Larger numbers could overflow when they are squared. */
const LARGEST = 1e100;

/**
 * Sorts rows by variant. Rows of one unit are added up, so that a list with a row per request (or per pod) cannot pass
 * for a list of units.
 * @throws PERF_ERR_UNITS for invalid rows
 */
export function sortRows(
  units: readonly UnitTotals[],
  { control, treatment }: Pick<CompareOptions, 'control' | 'treatment'>,
): { control: Arm; treatment: Arm } {
  if (!Array.isArray(units)) throw noData('units', 'an array of unit totals', units);
  const controlRows = new Map<string, Row>();
  const treatmentRows = new Map<string, Row>();
  for (const [index, row] of units.entries()) {
    check(row, index);
    if (row.variant === control) add(controlRows, row);
    else if (row.variant === treatment) add(treatmentRows, row);
    else {
      const known = `\`${JSON.stringify(control)}\` or \`${JSON.stringify(treatment)}\``;
      throw noData(`units[${index}].variant`, known, row.variant, 'Leave out the rows of other variants.');
    }
  }
  return { control: [...controlRows.values()], treatment: [...treatmentRows.values()] };
}

function add(rows: Map<string, Row>, { unit, count, sum, beforeCount = 0, beforeSum = 0 }: UnitTotals): void {
  const row = getOrAdd(rows, unit, () => ({ count: 0, sum: 0, beforeCount: 0, beforeSum: 0 }));
  row.count += count;
  row.sum += sum;
  row.beforeCount += beforeCount;
  row.beforeSum += beforeSum;
}

function check(row: UnitTotals, index: number): void {
  if (typeof row !== 'object' || row === null) throw noData(`units[${index}]`, 'an object', row);
  if (typeof row.unit !== 'string') throw noData(`units[${index}].unit`, 'a string', row.unit);
  checkPair(`units[${index}].`, 'count', row.count, 'sum', row.sum);
  if (row.beforeCount === undefined && row.beforeSum === undefined) return;
  checkPair(`units[${index}].`, 'beforeCount', row.beforeCount, 'beforeSum', row.beforeSum);
}

function checkPair(path: string, countName: string, count: unknown, sumName: string, sum: unknown): void {
  if (!isNumber(count) || count < 0) throw noData(path + countName, 'a number from 0 to 1e100', count);
  if (!isNumber(sum)) throw noData(path + sumName, 'a number from -1e100 to 1e100', sum);
  if (count === 0 && sum !== 0) throw noData(path + sumName, `0, because \`${countName}\` is 0`, sum);
}

const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= LARGEST;

/** The error of invalid input: where, what was expected, what was given, what to do. */
export const noData = (path: string, expected: string, given: unknown, advice = ''): PerfError =>
  new PerfError(
    'PERF_ERR_UNITS',
    `\`${path}\` must be ${expected}, got ${describe(given)}.${advice === '' ? '' : ` ${advice}`}`,
  );
