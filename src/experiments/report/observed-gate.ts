import type { Arm } from '../../core/statistics/ratio-mean.js';
import type { UnitCount } from '../statistics/compare-variants.js';
import { COLUMN, type Cell } from '../totals/gate-tally.js';
import type { ExperimentTotals, VariantTotals } from '../totals/experiment-totals.js';
import { mergeBuckets, mergeUnits } from '../totals/merge-totals.js';
import type { RequestMetric } from './experiment-report.js';

export interface ObservedVariant {
  units: UnitCount;
  buckets: VariantTotals['buckets'];
}

export interface ObservedGate {
  on: ObservedVariant;
  off: ObservedVariant;
  /** Units that had both variants, estimated. */
  unitsInBoth: UnitCount;
  treatmentShare: number | null;
  /** The share of `on` before and after it was changed; null: it was not. */
  splitMoved: readonly [number, number] | null;
}

/** Null when the gate was never checked on these routes. */
export function observedGate(totals: ExperimentTotals, gate: string, route: string | null): ObservedGate | null {
  const found = totals.gates.find((candidate) => candidate.gate === gate);
  const routes = found?.routes.filter((candidate) => matches(candidate, route)) ?? [];
  if (found === undefined || routes.length === 0) return null;
  const on = observeVariant(routes.map((candidate) => candidate.on));
  const off = observeVariant(routes.map((candidate) => candidate.off));
  const either = mergeUnits(routes.flatMap((candidate) => [candidate.on, candidate.off])).count();
  return {
    on,
    off,
    unitsInBoth: inBoth(on.units, off.units, either),
    treatmentShare: found.treatmentShare,
    splitMoved: found.splitMoved,
  };
}

const observeVariant = (routes: readonly VariantTotals[]): ObservedVariant => ({
  units: mergeUnits(routes).count(),
  buckets: mergeBuckets(routes),
});

/** The three estimates are of the same bits, so the sum of their variances is more than the difference has. */
const inBoth = (on: UnitCount, off: UnitCount, either: UnitCount): UnitCount => ({
  units: Math.max(0, on.units + off.units - either.units),
  variance: on.variance + off.variance + either.variance,
});

/** A share of units in both variants that is more than clients changing their id. */
const MIXED_UNITS = 0.01;
/** Standard deviations that an estimated number of units must be from 0. */
const SURE_DEVIATIONS = 3;

/** The gate's share changed, or the unit is not what the gate is randomised by. */
export function areUnitsMixed({ on, off, unitsInBoth: { units, variance } }: ObservedGate): boolean {
  return units > Math.max(MIXED_UNITS * (on.units.units + off.units.units), SURE_DEVIATIONS * Math.sqrt(variance));
}

/** `'GET /users/:id'` or `'/users/:id'`; null is every route. */
export function matches(candidate: { method: string; route: string }, route: string | null): boolean {
  return route === null || candidate.route === route || `${candidate.method} ${candidate.route}` === route;
}

interface Columns {
  readonly all: readonly [count: Cell, sum: Cell];
  /** Without the warm-up, weighted by the split at the time. */
  readonly even: readonly [count: Cell, sum: Cell];
}

export const COLUMNS: Readonly<Record<RequestMetric, Columns>> = {
  latency: { all: ['succeeded', 'succeededMs'], even: ['evenSucceeded', 'evenSucceededMs'] },
  errors: { all: ['completed', 'errors'], even: ['evenCompleted', 'evenErrors'] },
  blocked: { all: ['completed', 'blockedMs'], even: ['evenCompleted', 'evenBlockedMs'] },
};

/** The buckets of a variant as rows of one metric. Buckets without an observation do not count for the spread. */
export function selectArm({ buckets }: ObservedVariant, metric: RequestMetric, part: keyof Columns): Arm {
  // The first number of a row is its bucket.
  const [count, sum] = COLUMNS[metric][part].map((cell) => COLUMN[cell] + 1) as [number, number];
  return buckets
    .map((row) => ({ count: row[count]!, sum: row[sum]!, beforeCount: 0, beforeSum: 0 }))
    .filter((row) => row.count > 0);
}

export const sumCell = ({ buckets }: ObservedVariant, cell: Cell): number =>
  // The first number of a row is its bucket.
  buckets.reduce((total, row) => total + row[COLUMN[cell] + 1]!, 0);
