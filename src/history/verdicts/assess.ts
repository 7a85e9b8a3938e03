import { studentQuantile, studentUpperTail } from '../../core/statistics/distributions.js';
import { findMedian } from '../../core/statistics/median.js';
import type { Verdict } from '../../core/verdict.js';
import { explainChange, type SiteSums } from '../compare/because.js';
import { METRICS, type MetricRule, type Unit } from './metrics.js';
import { readUsual, RECENT, type RouteTrack, type Usual } from './route-track.js';
import type { WeekProfile } from './week-profile.js';

/** Least number of past units: an hour of a busy route. */
const MIN_PAST = 12;
/** The usual changes slowly: it is computed so often. */
const REFRESH_MS = 30 * 60_000;
/** Fewer weeks cannot outvote one with an incident: the change must then show against the day as well. */
const SURE_WEEKS = 3;
/** Least t value of a route that joins the verdict of a significant one. */
const LIKELY_T = 2;
/** Accepted share of false changes among all reported ones (Benjamini and Hochberg, 1995). */
const FALSE_DISCOVERIES = 0.01;
const ALPHA = 0.05;
/** Factor from the median absolute deviation to the standard deviation of a normal distribution. */
const MAD_TO_SD = 1.4826;

/** The recent units of one route and metric, compared with the usual. */
export interface Assessment {
  readonly route: string;
  readonly rule: MetricRule;
  readonly usual: Usual;
  readonly before: number;
  readonly now: number;
  /** The level of each recent unit; `now` is their mean. */
  readonly nows: readonly number[];
  readonly error: number;
  readonly degrees: number;
  readonly pValue: number;
  /** Every recent unit differs enough to report, in the same direction. */
  readonly matters: boolean;
  /** Enough to join the verdict of a significant route. */
  readonly likely: boolean;
  readonly since: number;
  readonly count: number;
}

/** Computes the usual, or returns the last one; null with too few units. */
function findUsual(route: string, track: RouteTrack, index: number, profile: WeekProfile): Usual | null {
  const { past, recent, usual } = track;
  if (recent.length < RECENT || past.length < MIN_PAST) return null;
  const { at } = recent.at(-1)!;
  const known = usual[index];
  if (known !== undefined && known.shape?.levelAt(at) !== null && at - known.at < REFRESH_MS) return known;
  const shape = METRICS[index]!.metric === 'latency' ? profile.findShape(route, at) : null;
  const units = past.flatMap(({ at: time, levels }) => {
    const [level, expected] = [levels[index] ?? null, shape === null ? 0 : shape.levelAt(time)];
    return level === null || expected === null ? [] : { level, residual: level - expected };
  });
  if (units.length < MIN_PAST) return null;
  const residuals = units.map(({ residual }) => residual);
  const [center, dayLevel] = [findMedian(residuals), findMedian(units.map(({ level }) => level))];
  return (usual[index] = {
    at,
    shape,
    center,
    dayLevel,
    spread: computeSpread(residuals, center),
    units: units.length,
  });
}

const average = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

export function assess(route: string, track: RouteTrack, index: number, profile: WeekProfile): Assessment | null {
  const rule = METRICS[index]!;
  const usual = findUsual(route, track, index, profile);
  if (usual === null) return null;
  const { recent } = track;
  const nows = recent.flatMap((unit) => rule.level(unit) ?? []);
  if (nows.length < recent.length) return null;
  const befores = recent.map(({ at }) => readUsual(usual, at));
  const [before, now] = [average(befores), average(nows)];
  const direction = Math.sign(now - before);
  const isSure = usual.shape === null || usual.shape.weeks >= SURE_WEEKS;
  const matters = nows.every((level, unit) =>
    (isSure ? [befores[unit]!] : [befores[unit]!, usual.dayLevel]).every(
      (from) => rule.matters(from, level) && Math.sign(level - from) === direction,
    ),
  );
  const counts = recent.map(({ sums }) => sums.count);
  const [since, count] = [recent[0]!.at, counts.reduce((sum, one) => sum + one, 0)];
  const found = { route, rule, usual, before, now, nows, matters, since, count };
  // Most routes, most of the time: the test of significance would be for nothing.
  if (!matters) return { ...found, error: 0, degrees: 1, pValue: 1, likely: false };
  const spread = Math.max(usual.spread, rule.leastSpread(before, Math.min(...counts), usual.shape !== null));
  // Neighbouring windows resemble each other: the recent ones are one observation.
  const error = spread * Math.sqrt(1 + 1 / usual.units);
  const degrees = usual.units - 1;
  const t = (now - before) / error;
  const pValue = Math.min(1, 2 * studentUpperTail(Math.abs(t), degrees));
  return { ...found, error, degrees, pValue, likely: Math.abs(t) >= LIKELY_T };
}

/** The greater of a robust and a plain standard deviation, since days have quiet and noisy hours. */
function computeSpread(residuals: readonly number[], center: number): number {
  const deviations = residuals.map((residual) => Math.abs(residual - center));
  const variance = deviations.reduce((sum, deviation) => sum + deviation * deviation, 0) / (residuals.length - 1);
  const robust = MAD_TO_SD * findMedian(deviations);
  // At most doubled: few outliers, of an incident too short for a verdict, must not hide the next one.
  return Math.max(robust, Math.min(Math.sqrt(variance), 2 * robust));
}

/** Assessments that are significant among all, by {@link FALSE_DISCOVERIES}. */
export function findSignificant(assessments: readonly Assessment[]): Assessment[] {
  const sorted = assessments.toSorted((a, b) => a.pValue - b.pValue);
  const last = sorted.findLastIndex(({ pValue }, index) => pValue <= ((index + 1) / sorted.length) * FALSE_DISCOVERIES);
  return sorted.slice(0, last + 1).filter(({ matters }) => matters);
}

/** The mean of routes, weighted by their requests; null where no route has a value. */
export function averageRoutes(routes: Iterable<Assessment>, read: (one: Assessment) => number | null): number | null {
  let [sum, weight] = [0, 0];
  for (const one of routes) {
    const value = read(one);
    if (value === null) continue;
    sum += value * one.count;
    weight += one.count;
  }
  return weight === 0 ? null : sum / weight;
}

/** The change of several routes together, and its interval. */
export function computeChange(moved: readonly Assessment[]): { change: number; ci: readonly [number, number] } {
  const average = (read: (one: Assessment) => number): number => averageRoutes(moved, read)!;
  const { rule } = moved[0]!;
  const [before, now] = [average((one) => one.before), average((one) => one.now)];
  // Routes of one site are not independent: their errors are added, not squared.
  const margin = average(({ error, degrees }) => error * studentQuantile(ALPHA / 2, degrees));
  return {
    change: rule.change(before, now),
    ci: [rule.change(before, now - margin), rule.change(before, now + margin)],
  };
}

/** Parts of the added time for `latency` and `over`; for the other metrics the share of each route. */
export function findReasons(moved: readonly Assessment[], before: SiteSums, after: SiteSums): Verdict['because'] {
  const { metric } = moved[0]!.rule;
  const routes = moved.map(({ route }) => route);
  if (metric === 'latency' || metric === 'over') return explainChange(before, after, routes);
  const part = metric === 'blocked' ? 'own' : 'unexplained';
  const changes = moved.map((one) => Math.abs(one.now - one.before) * (metric === 'blocked' ? 1 : one.count));
  const total = changes.reduce((sum, change) => sum + change, 0);
  return routes
    .map((name, index) => ({ part, name, share: changes[index]! / total }) as const)
    .toSorted((a, b) => b.share - a.share);
}

/** Distance of a unit from the usual as a share of the reported change: 1 is all of it, 0 is back to the usual. */
export function computeLeft({ rule, usual, before, now }: Assessment, unit: Unit): number | null {
  const level = rule.level(unit);
  return level === null ? null : (level - readUsual(usual, unit.at)) / (now - before);
}

/** Whether every recent unit shows twice the reported change, measured by its last unit: the change may have begun within the first. */
export function isFarBeyond(reported: Assessment | undefined, { rule, before, nows }: Assessment): boolean {
  if (reported === undefined) return false;
  const last = reported.nows.at(-1)!;
  const least = 2 * rule.change(reported.before, last);
  return nows.every((now) => now > last && rule.matters(last, now) && rule.change(before, now) >= least);
}
