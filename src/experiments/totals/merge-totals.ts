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

type Fields = Readonly<Record<string, unknown>>;
/** What a value must be, in words, and whether it is. */
type Rule = readonly [expected: string, is: (value: unknown) => boolean];

const isSum = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const TEXT: Rule = ['a text', (value) => typeof value === 'string'];
const SUM: Rule = ['a number of 0 or more', isSum];
const SUM_OR_NULL: Rule = ['a number of 0 or more, or null', (value) => value === null || isSum(value)];
const FLAG: Rule = ['`true` or `false`', (value) => typeof value === 'boolean'];
const BITMAP: Rule = [
  'a bitmap of units, deflated, base64',
  (value) => typeof value === 'string' && UnitBitmap.parse(value) !== null,
];
const BUCKET: Rule = [
  `a bucket below ${BUCKETS} and its ${CELLS.length} sums`,
  (value) =>
    Array.isArray(value) &&
    value.length === CELLS.length + 1 &&
    value.every(isSum) &&
    Number.isInteger(value[0]) &&
    (value[0] as number) < BUCKETS,
];
const SLICE_ROUTE: Rule = [
  'a method, a pattern and sums',
  (value) =>
    Array.isArray(value) &&
    value.length === SLICE_CELLS + 2 &&
    value.slice(0, 2).every((name) => typeof name === 'string') &&
    value.slice(2).every(isSum),
];

/**
 * Totals come over the network: what is none, or of another version, must not become a wrong answer.
 * @throws PERF_ERR_UNITS with the place
 */
export function checkTotals(totals: unknown, index: number): void {
  const path = `totals[${index}]`;
  const given = fields(totals, path);
  if (given['version'] !== 2) {
    throw noData(`${path}.version`, '2', given['version'], 'Let all pods run one version of nestjs-perf.');
  }
  each(given['sources'], `${path}.sources`, (source, at) => must(source, at, TEXT));
  each(given['gates'], `${path}.gates`, checkGate);
  each(given['traffic'], `${path}.traffic`, (traffic, at) => {
    check(traffic, at, { method: TEXT, route: TEXT, succeeded: SUM, succeededMs: SUM });
  });
  each(given['slices'], `${path}.slices`, (slice, at) => {
    const { routes } = check(slice, at, {
      gate: TEXT,
      pair: TEXT,
      on: FLAG,
      cpuMs: SUM_OR_NULL,
      memoryBytes: SUM_OR_NULL,
    });
    each(routes, `${at}.routes`, (row, place) => must(row, place, SLICE_ROUTE));
  });
}

function checkGate(gate: unknown, path: string): void {
  const { routes } = check(gate, path, { gate: TEXT, treatmentShare: SUM_OR_NULL });
  each(routes, `${path}.routes`, (route, at) => {
    const variants = check(route, at, { method: TEXT, route: TEXT });
    for (const name of ['on', 'off']) {
      const { buckets } = check(variants[name], `${at}.${name}`, { units: BITMAP });
      each(buckets, `${at}.${name}.buckets`, (row, place) => must(row, place, BUCKET));
    }
  });
}

function check(value: unknown, path: string, rules: Readonly<Record<string, Rule>>): Fields {
  const given = fields(value, path);
  for (const [key, rule] of Object.entries(rules)) must(given[key], `${path}.${key}`, rule);
  return given;
}

function fields(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null) throw noData(path, 'an object of `experiments.totals()`', value);
  return value as Fields;
}

function each(values: unknown, path: string, visit: (value: unknown, path: string) => void): void {
  if (!Array.isArray(values)) throw noData(path, 'an array', values);
  values.forEach((value, index) => visit(value, `${path}[${index}]`));
}

function must(value: unknown, path: string, [expected, is]: Rule): void {
  if (!is(value)) throw noData(path, expected, value);
}
