import type { Change } from '../../ports/history.js';
import { fixedHorizon, notBelow, relativeLift, welchDegrees } from '../../core/statistics/inference.js';
import { studentQuantile } from '../../core/statistics/distributions.js';
import { estimateMean, ratioMean, type RatioMean } from '../../core/statistics/ratio-mean.js';
import type { RouteSums } from '../rows/window.js';

/** One window: what an interval counts as one, since requests of the same minutes resemble each other. */
export type Unit = Pick<RouteSums, 'completed' | 'sumMs' | 'errors' | 'over'> & { count: number };

const ALPHA = 0.05;
const UNKNOWN = [-Infinity, Infinity] as const;

type CountAndSum = (unit: Unit) => readonly [count: number, sum: number];

function computeMean(units: readonly Unit[], of: CountAndSum): RatioMean {
  const counted = units.map((unit) => of(unit)).filter(([count]) => count > 0);
  return ratioMean(counted.map(([count, sum]) => ({ count, sum })));
}

/** The relative change of the mean duration. */
export function compareMeans(before: readonly Unit[], after: readonly Unit[]): Change {
  const of: CountAndSum = ({ completed, sumMs }) => [completed, sumMs];
  const [was, is] = [computeMean(before, of), computeMean(after, of)];
  if (was.count === 0 || is.count === 0 || was.mean === 0) return { value: 0, ci: UNKNOWN };
  const value = is.mean / was.mean - 1;
  if (was.units < 2 || is.units < 2) return { value, ci: UNKNOWN };
  const lift = relativeLift(estimateMean(was), estimateMean(is));
  return { value, ci: notBelow(-1, fixedHorizon(lift, ALPHA)).ci };
}

/** The difference of two shares. */
export function compareShares(before: readonly Unit[], after: readonly Unit[], of: CountAndSum): Change {
  const [was, is] = [computeMean(before, of), computeMean(after, of)];
  if (was.count === 0 || is.count === 0) return { value: 0, ci: UNKNOWN };
  const value = is.mean - was.mean;
  if (was.units < 2 || is.units < 2) return { value, ci: UNKNOWN };
  const [control, treatment] = [estimateMean(was), estimateMean(is)];
  const error = Math.sqrt(control.variance + treatment.variance);
  // Windows that all agree, for example in no error at all, leave no spread.
  const margin = error === 0 ? 0 : studentQuantile(ALPHA / 2, welchDegrees(control, treatment)) * error;
  return { value, ci: [value - margin, value + margin] };
}
