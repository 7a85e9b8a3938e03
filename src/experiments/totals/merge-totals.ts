import { noData } from '../statistics/arm.js';
import { BUCKETS, CELLS } from './cells.js';
import type { ExperimentTotals, GateTotals, RouteTotals, TrafficTotals, VariantTotals } from './experiment-totals.js';
import { UnitBitmap } from './unit-bitmap.js';

/**
 * Adds up the totals of several processes: sums per bucket, units by the union of their bitmaps. The order does not matter,
 * and totals that were merged can be merged again. None give empty totals.
 * @throws PERF_ERR_UNITS for what is no totals, or totals of another format
 */
export function mergeTotals(...totals: readonly ExperimentTotals[]): ExperimentTotals {
  totals.forEach(check);
  return {
    version: 1,
    sources: totals.flatMap(({ sources }) => sources).sort(),
    gates: mergedBy(
      totals.flatMap(({ gates }) => gates),
      ({ gate }) => gate,
      mergeGates,
    ),
    traffic: mergedBy(
      totals.flatMap(({ traffic }) => traffic),
      ({ method, route }) => `${method} ${route}`,
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

function mergeGates(a: GateTotals, b: GateTotals): GateTotals {
  return {
    gate: a.gate,
    // Pods that disagree are in the middle of a rollout: then no single share is the expected one.
    treatmentShare: a.treatmentShare === b.treatmentShare ? a.treatmentShare : null,
    routes: mergedBy([...a.routes, ...b.routes], ({ method, route }) => `${method} ${route}`, mergeRoutes),
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
  if (bitmap === null) throw noData('totals.….units', 'a bitmap of units, base64', units);
  return bitmap;
}

const addTraffic = (a: TrafficTotals, b: TrafficTotals): TrafficTotals => ({
  ...a,
  succeeded: a.succeeded + b.succeeded,
  succeededMs: a.succeededMs + b.succeededMs,
});

/** Totals come over the network: what is not of this format must not become a wrong answer. */
function check(totals: ExperimentTotals, index: number): void {
  const path = `totals[${index}]`;
  if (typeof totals !== 'object' || totals === null) throw noData(path, 'what `experiments.totals()` returned', totals);
  if (totals.version !== 1) {
    throw noData(`${path}.version`, '1', totals.version, 'Let all pods run the same version of nestjs-perf.');
  }
  for (const key of ['sources', 'gates', 'traffic', 'slices'] as const) {
    if (!Array.isArray(totals[key])) throw noData(`${path}.${key}`, 'an array', totals[key]);
  }
  for (const { gate, routes } of totals.gates) {
    for (const { on, off } of routes) {
      for (const variant of [on, off])
        if (!isVariant(variant)) throw noData(`${path}: gate \`${gate}\``, 'sums per bucket of units', variant);
    }
  }
}

const isVariant = (variant: VariantTotals): boolean =>
  UnitBitmap.parse(variant.units) !== null &&
  variant.buckets.every(
    (row) =>
      row.length === CELLS.length + 1 &&
      row.every((sum) => Number.isFinite(sum) && sum >= 0) &&
      Number.isInteger(row[0]) &&
      row[0]! < BUCKETS,
  );
