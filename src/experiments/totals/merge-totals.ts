import { noData } from '../statistics/compare-variants.js';
import type { ExperimentTotals, GateTotals, RouteTotals, VariantTotals } from './experiment-totals.js';
import { UnitBitmap } from './unit-bitmap.js';

/**
 * Adds up the totals of several processes: sums per bucket, units by the union of their bitmaps. The order does not matter,
 * and totals that were merged can be merged again. None give empty totals.
 * @throws PERF_ERR_UNITS for what is no totals, totals of another format, and a bitmap that was cut
 */
export function mergeTotals(...totals: readonly ExperimentTotals[]): ExperimentTotals {
  for (const [index, one] of totals.entries()) {
    // Pods of two releases may send totals of two formats.
    const version: unknown = (one as Partial<ExperimentTotals> | null)?.version;
    if (version === 3) continue;
    throw noData(`totals[${index}].version`, '3', version, 'Let all pods run one version of nestjs-perf.');
  }
  return {
    version: 3,
    sources: totals.flatMap(({ sources }) => sources).sort(),
    gates: mergedBy(
      totals.flatMap(({ gates }) => gates),
      ({ gate }) => gate,
      joinGates,
    ).map((gate) => ({ ...gate, routes: mergedBy(gate.routes, nameRoute, mergeRoutes) })),
    slices: totals.flatMap(({ slices }) => slices),
  };
}

function mergedBy<T>(items: readonly T[], readKey: (item: T) => string, merge: (a: T, b: T) => T): T[] {
  const merged = new Map<string, T>();
  for (const item of items) {
    const key = readKey(item);
    const known = merged.get(key);
    merged.set(key, known === undefined ? item : merge(known, item));
  }
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
}

const nameRoute = ({ method, route }: { method: string; route: string }): string => `${method} ${route}`;

const joinGates = (a: GateTotals, b: GateTotals): GateTotals => ({
  gate: a.gate,
  // Pods that disagree are in the middle of a rollout: then no single share is the expected one.
  treatmentShare: a.treatmentShare === b.treatmentShare ? a.treatmentShare : null,
  splitMoved: a.splitMoved ?? b.splitMoved ?? sharesApart(a.treatmentShare, b.treatmentShare),
  routes: [...a.routes, ...b.routes],
});

const sharesApart = (a: number | null, b: number | null): [number, number] | null =>
  a === null || b === null || a === b ? null : [a, b];

const mergeRoutes = (a: RouteTotals, b: RouteTotals): RouteTotals => ({
  method: a.method,
  route: a.route,
  on: mergeVariants(a.on, b.on),
  off: mergeVariants(a.off, b.off),
});

const mergeVariants = (...variants: readonly VariantTotals[]): VariantTotals => ({
  units: mergeUnits(variants).toString(),
  buckets: mergeBuckets(variants),
});

/**
 * The sums of all variants by bucket of units.
 * @internal
 */
export function mergeBuckets(variants: readonly VariantTotals[]): VariantTotals['buckets'] {
  const buckets = new Map<number, readonly number[]>();
  for (const row of variants.flatMap((variant) => variant.buckets)) {
    const bucket = row[0]!;
    const known = buckets.get(bucket);
    buckets.set(bucket, known === undefined ? row : row.map((sum, i) => (i === 0 ? bucket : sum + known[i]!)));
  }
  return [...buckets.values()].sort((x, y) => x[0]! - y[0]!);
}

/**
 * The units of all variants.
 * @throws PERF_ERR_UNITS
 * @internal
 */
export function mergeUnits(variants: readonly VariantTotals[]): UnitBitmap {
  const all = UnitBitmap.empty();
  for (const { units } of variants) {
    const bitmap = UnitBitmap.parse(units);
    if (bitmap === null) throw noData('totals.….units', 'a bitmap of units, deflated, base64', units);
    all.merge(bitmap);
  }
  return all;
}
