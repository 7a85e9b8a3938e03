import { noData } from '../statistics/arm.js';
import { checkTotals } from './check-totals.js';
import type { ExperimentTotals, GateTotals, RouteTotals, TrafficTotals, VariantTotals } from './experiment-totals.js';
import { UnitBitmap } from './unit-bitmap.js';

/**
 * Adds up the totals of several processes: sums per bucket, units by the union of their bitmaps. The order does not matter,
 * and totals that were merged can be merged again. None give empty totals.
 * @throws PERF_ERR_UNITS for what is no totals, or totals of another format
 */
export function mergeTotals(...totals: readonly ExperimentTotals[]): ExperimentTotals {
  totals.forEach(checkTotals);
  return {
    version: 2,
    sources: totals.flatMap(({ sources }) => sources).sort(),
    gates: mergedBy(
      totals.flatMap(({ gates }) => gates),
      ({ gate }) => gate,
      joinGates,
    ).map((gate) => ({ ...gate, routes: mergedBy(gate.routes, nameOf, mergeRoutes) })),
    traffic: mergedBy(
      totals.flatMap(({ traffic }) => traffic),
      nameOf,
      addTraffic,
    ),
    slices: totals.flatMap(({ slices }) => slices),
  };
}

function mergedBy<T>(items: readonly T[], keyOf: (item: T) => string, merge: (a: T, b: T) => T): T[] {
  const merged = new Map<string, T>();
  for (const item of items) {
    const key = keyOf(item);
    const known = merged.get(key);
    merged.set(key, known === undefined ? item : merge(known, item));
  }
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
}

const nameOf = ({ method, route }: { method: string; route: string }): string => `${method} ${route}`;

function joinGates(a: GateTotals, b: GateTotals): GateTotals {
  return {
    gate: a.gate,
    // Pods that disagree are in the middle of a rollout: then no single share is the expected one.
    treatmentShare: a.treatmentShare === b.treatmentShare ? a.treatmentShare : null,
    routes: [...a.routes, ...b.routes],
  };
}

const mergeRoutes = (a: RouteTotals, b: RouteTotals): RouteTotals => ({
  method: a.method,
  route: a.route,
  on: mergeVariants(a.on, b.on),
  off: mergeVariants(a.off, b.off),
});

/** @internal */
export function mergeVariants(a: VariantTotals, b: VariantTotals): VariantTotals {
  const units = bitmapOf(a);
  units.merge(bitmapOf(b));
  const buckets = new Map<number, readonly number[]>();
  for (const row of [...a.buckets, ...b.buckets]) {
    const bucket = row[0]!;
    const known = buckets.get(bucket);
    buckets.set(bucket, known === undefined ? row : row.map((sum, i) => (i === 0 ? bucket : sum + known[i]!)));
  }
  return { units: units.toString(), buckets: [...buckets.values()].sort((x, y) => x[0]! - y[0]!) };
}

/** @throws PERF_ERR_UNITS */
export function bitmapOf({ units }: VariantTotals): UnitBitmap {
  const bitmap = UnitBitmap.parse(units);
  if (bitmap === null) throw noData('totals.….units', 'a bitmap of units, deflated, base64', units);
  return bitmap;
}

const addTraffic = (a: TrafficTotals, b: TrafficTotals): TrafficTotals => ({
  ...a,
  succeeded: a.succeeded + b.succeeded,
  succeededMs: a.succeededMs + b.succeededMs,
});
