import { describe } from '../../core/option.js';
import { PerfError } from '../../core/perf.error.js';
import type { Arm, Row } from '../../core/statistics/ratio-mean.js';

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

/** A number of units; estimated when it has a variance. */
export interface UnitCount {
  units: number;
  /** Of the estimate; 0 for a count. */
  variance: number;
}

/** Larger figures could overflow when they are squared. */
const LARGEST = 1e100;

/**
 * Sorts rows by variant. Rows of one unit are added up, so that a list with a row per request (or per pod) cannot pass
 * for a list of units.
 * @throws PERF_ERR_UNITS for rows that are no data
 */
export function armsOf(
  units: readonly UnitTotals[],
  { control, treatment }: Pick<CompareOptions, 'control' | 'treatment'>,
): { control: Arm; treatment: Arm } {
  if (!Array.isArray(units)) throw noData('units', 'an array of unit totals', units);
  const controlRows = new Map<string, Row>();
  const treatmentRows = new Map<string, Row>();
  for (let index = 0; index < units.length; index++) {
    const row = units[index]!;
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
  const row = rows.get(unit);
  if (row === undefined) {
    rows.set(unit, { count, sum, beforeCount, beforeSum });
    return;
  }
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

/** Input that is no data: where, what was expected, what was given, what to do. */
export const noData = (path: string, expected: string, given: unknown, advice = ''): PerfError =>
  new PerfError(
    'PERF_ERR_UNITS',
    `\`${path}\` must be ${expected}, got ${describe(given)}.${advice === '' ? '' : ` ${advice}`}`,
  );
