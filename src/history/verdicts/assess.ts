import { studentQuantile, studentUpperTail } from '../../core/statistics/distributions.js';
import { findMedian } from '../../core/statistics/median.js';
import type { Verdict } from '../../core/verdict.js';
import { explainChange, type SiteSums } from '../compare/because.js';
import { METRICS, type MetricRule, type Unit } from './metrics.js';
import { RECENT, type RouteTrack } from './route-track.js';
import type { WeekProfile } from './week-profile.js';

/** Units before, at least: an hour of a busy route. */
const MIN_PAST = 12;
/** The usual changes slowly: it is worked out anew so often. */
const REFRESH_MS = 30 * 60_000;
/** Fewer weeks cannot outvote one with a change or an incident: the day must show the same. */
const SURE_WEEKS = 3;
/** A route that follows a sure one needs no more than this. */
const LIKELY = 2;
/** Share of verdicts of chance among all (Benjamini and Hochberg, 1995). */
const FALSE_DISCOVERIES = 0.01;
const ALPHA = 0.05;
/** Times the median of absolute deviations, it is a normal distribution's standard deviation. */
const MAD_TO_SD = 1.4826;

/** The usual of one route and metric, as a level at a time. */
export interface Usual {
  readonly levelAt: (at: number) => number;
  readonly against: 'week' | 'day';
}

/** One route and metric, now against the usual. */
export interface Assessment {
  readonly route: string;
  readonly rule: MetricRule;
  readonly usual: Usual;
  readonly before: number;
  readonly now: number;
  /** Levels of each recent unit; `now` is their mean. */
  readonly nows: readonly number[];
  readonly error: number;
  readonly degrees: number;
  readonly pValue: number;
  /** It matters, in every recent unit in the same direction. */
  readonly matters: boolean;
  readonly likely: boolean;
  readonly since: number;
  /** Requests in the recent units. */
  readonly count: number;
}

/** Null while too little is known. */
export function assess(route: string, track: RouteTrack, index: number, profile: WeekProfile): Assessment | null {
  const rule = METRICS[index]!;
  const { past, recent } = track;
  if (recent.length < RECENT || past.length < MIN_PAST) return null;
  const { at } = recent.at(-1)!;
  let known = track.usual[index];
  if (known === undefined || known.shape?.levelAt(at) === null || at - known.at >= REFRESH_MS) {
    const shape = rule.metric === 'latency' ? profile.findShape(route, at) : null;
    const units = past.flatMap(({ at: time, levels }) => {
      const [level, expected] = [levels[index] ?? null, shape === null ? 0 : shape.levelAt(time)];
      return level === null || expected === null ? [] : { level, residual: level - expected };
    });
    if (units.length < MIN_PAST) return null;
    const residuals = units.map(({ residual }) => residual);
    const [center, day] = [findMedian(residuals), findMedian(units.map(({ level }) => level))];
    known = { at, shape, center, day, spread: computeSpread(residuals, center), units: units.length };
    track.usual[index] = known;
  }
  const { shape, center, day, units } = known;
  const usual: Usual = {
    levelAt: (time) => (shape?.levelAt(time) ?? 0) + center,
    against: shape === null ? 'day' : 'week',
  };
  const levels = recent.map((unit) => ({ now: rule.level(unit), before: usual.levelAt(unit.at) }));
  if (levels.some(({ now }) => now === null)) return null;
  const average = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const before = average(levels.map((level) => level.before));
  const nows = levels.map((level) => level.now!);
  const now = average(nows);
  const counts = recent.map(({ sums }) => sums.count);
  const direction = Math.sign(now - before);
  const isSure = shape === null || shape.weeks >= SURE_WEEKS;
  const matters = levels.every((level) =>
    (isSure ? [level.before] : [level.before, day]).every(
      (from) => rule.matters(from, level.now!) && Math.sign(level.now! - from) === direction,
    ),
  );
  const [since, count] = [recent[0]!.at, counts.reduce((sum, one) => sum + one, 0)];
  const found = { route, rule, usual, before, now, nows, matters, since, count };
  // Most routes, most of the time: no verdict comes of it, and a test of significance costs time.
  if (!matters) return { ...found, error: 0, degrees: 1, pValue: 1, likely: false };
  const spread = Math.max(known.spread, rule.leastSpread(before, Math.min(...counts), shape !== null));
  // Neighbouring windows resemble each other: the recent ones are one observation.
  const error = spread * Math.sqrt(1 + 1 / units);
  const degrees = units - 1;
  const t = (now - before) / error;
  const pValue = Math.min(1, 2 * studentUpperTail(Math.abs(t), degrees));
  return { ...found, error, degrees, pValue, likely: Math.abs(t) >= LIKELY };
}

/** Days have quiet and noisy hours: the greater of a robust and a plain spread. */
function computeSpread(residuals: readonly number[], center: number): number {
  const deviations = residuals.map((residual) => Math.abs(residual - center));
  const variance = deviations.reduce((sum, deviation) => sum + deviation * deviation, 0) / (residuals.length - 1);
  const robust = MAD_TO_SD * findMedian(deviations);
  // A few windows far out, of an incident too short for a verdict, do not widen it.
  return Math.max(robust, Math.min(Math.sqrt(variance), 2 * robust));
}

/** Assessments that are no chance, at a share of false ones of 1 %. */
export function significant(assessments: readonly Assessment[]): Assessment[] {
  const sorted = assessments.toSorted((a, b) => a.pValue - b.pValue);
  const last = sorted.findLastIndex(({ pValue }, index) => pValue <= ((index + 1) / sorted.length) * FALSE_DISCOVERIES);
  return sorted.slice(0, last + 1).filter(({ matters }) => matters);
}

/** The change of several routes together, weighted by requests, and its interval. */
export function computeChange(moved: readonly Assessment[]): { change: number; ci: readonly [number, number] } {
  const total = moved.reduce((sum, { count }) => sum + count, 0);
  const weighted = (of: (one: Assessment) => number): number =>
    moved.reduce((sum, one) => sum + (one.count / total) * of(one), 0);
  const { rule } = moved[0]!;
  const [before, now] = [weighted((one) => one.before), weighted((one) => one.now)];
  // Routes of one site are not independent: their errors are added, not squared.
  const margin = weighted(({ error, degrees }) => error * studentQuantile(ALPHA / 2, degrees));
  return {
    change: rule.change(before, now),
    ci: [rule.change(before, now - margin), rule.change(before, now + margin)],
  };
}

/** Parts of the added time for latency; routes for the other metrics. */
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

/** How far a unit still is from the usual, as a share of the verdict's change: 1 is all of it. */
export function computeLeft({ rule, usual, before, now }: Assessment, unit: Unit): number | null {
  const level = rule.level(unit);
  return level === null ? null : (level - usual.levelAt(unit.at)) / (now - before);
}

/** Whether every recent unit is twice the verdict's change. That was a mean of units of which the first may have been half calm. */
export function isFarBeyond(told: Assessment | undefined, { rule, before, nows }: Assessment): boolean {
  if (told === undefined) return false;
  const last = told.nows.at(-1)!;
  const least = 2 * rule.change(told.before, last);
  return nows.every((now) => now > last && rule.matters(last, now) && rule.change(before, now) >= least);
}
