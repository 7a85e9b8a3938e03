import { noData } from '../statistics/compare-variants.js';
import type { ExperimentTotals, GateTotals, RouteTotals, TrafficTotals, VariantTotals } from './experiment-totals.js';
import { BUCKETS, CELLS, SLICE_CELLS } from './route-tally.js';
import { UnitBitmap } from './unit-bitmap.js';

/**
 * Adds up the totals of several processes: sums per bucket, units by the union of their bitmaps. The order does not matter,
 * and totals that were merged can be merged again. None give empty totals.
 * @throws PERF_ERR_UNITS for what is no totals, or totals of another format
 */
export function mergeTotals(...totals: readonly ExperimentTotals[]): ExperimentTotals {
  totals.forEach((one, index) => totalsCheck(one, `totals[${index}]`));
  return {
    version: 3,
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

const BITMAP = 'a bitmap of units, deflated, base64';

/** @throws PERF_ERR_UNITS */
export function bitmapOf({ units }: VariantTotals): UnitBitmap {
  const bitmap = UnitBitmap.parse(units);
  if (bitmap === null) throw noData('totals.….units', BITMAP, units);
  return bitmap;
}

const addTraffic = (a: TrafficTotals, b: TrafficTotals): TrafficTotals => ({
  method: a.method,
  route: a.route,
  succeeded: a.succeeded + b.succeeded,
  succeededMs: a.succeededMs + b.succeededMs,
});

/** @throws PERF_ERR_UNITS with the place. */
type Check = (value: unknown, path: string) => void;

const must =
  (expected: string, is: (value: unknown) => boolean, advice?: string): Check =>
  (value, path) => {
    if (!is(value)) throw noData(path, expected, value, advice);
  };
const listOf =
  (check: Check): Check =>
  (values, path) => {
    if (!Array.isArray(values)) throw noData(path, 'an array', values);
    values.forEach((value, index) => check(value, `${path}[${index}]`));
  };
const fields =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value, path) => {
    if (typeof value !== 'object' || value === null) throw noData(path, 'an object of `experiments.totals()`', value);
    for (const [key, check] of Object.entries(checks)) check((value as Record<string, unknown>)[key], `${path}.${key}`);
  };

const isSum = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const text = must('a text', (value) => typeof value === 'string');
const sum = must('a number of 0 or more', isSum);
const sumOrNull = must('a number of 0 or more, or null', (value) => value === null || isSum(value));
const sharesOrNull = must(
  'two shares, or null',
  (value) => value === null || (Array.isArray(value) && value.length === 2 && value.every(isSum)),
);
const bitmap = must(BITMAP, (value) => typeof value === 'string' && UnitBitmap.parse(value) !== null);
const bucket = must(
  `a bucket below ${BUCKETS} and its ${CELLS.length} sums`,
  (value) =>
    Array.isArray(value) &&
    value.length === CELLS.length + 1 &&
    value.every(isSum) &&
    Number.isInteger(value[0]) &&
    (value[0] as number) < BUCKETS,
);
const sliceRoute = must(
  'a method, a pattern and sums',
  (value) =>
    Array.isArray(value) &&
    value.length === SLICE_CELLS + 2 &&
    value.slice(0, 2).every((name) => typeof name === 'string') &&
    value.slice(2).every(isSum),
);
const variant = fields({ units: bitmap, buckets: listOf(bucket) });
const ofRoute = { method: text, route: text };

/** Totals come over the network: what is none, or of another version, must not become a wrong answer. */
const totalsCheck = fields({
  version: must('3', (value) => value === 3, 'Let all pods run one version of nestjs-perf.'),
  sources: listOf(text),
  gates: listOf(
    fields({
      gate: text,
      treatmentShare: sumOrNull,
      splitMoved: sharesOrNull,
      routes: listOf(fields({ ...ofRoute, on: variant, off: variant })),
    }),
  ),
  traffic: listOf(fields({ ...ofRoute, succeeded: sum, succeededMs: sum })),
  slices: listOf(
    fields({
      gate: text,
      pair: text,
      on: must('`true` or `false`', (value) => typeof value === 'boolean'),
      cpuMs: sumOrNull,
      memoryBytes: sumOrNull,
      routes: listOf(sliceRoute),
    }),
  ),
});
