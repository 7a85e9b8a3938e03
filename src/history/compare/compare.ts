import { getOrAdd } from '../../core/get-or-add.js';
import { studentQuantile } from '../../core/statistics/distributions.js';
import { fixedHorizon, notBelow, relativeLift, welchDegrees } from '../../core/statistics/inference.js';
import { estimateMean, ratioMean, type RatioMean } from '../../core/statistics/ratio-mean.js';
import { Turns } from '../../core/turns.js';
import type { Change, PerfComparison, RouteComparison, TimeRange } from '../../ports/history.js';
import type { HistorySource, ReadBucket } from '../history-store.js';
import { startBucket, findRule, type Tier } from '../rows/tiers.js';
import { isCounted, ProcessSums, RouteWindow } from '../rows/window.js';
import { computeRangeFigures, findTier } from '../series.js';
import { comparisonText } from '../text.js';
import { explainChange, findLoopCause, type SiteSums } from './because.js';
import type { ComparedRanges } from './ranges.js';

/** The sums of one bucket. Intervals count buckets, not requests: requests of the same minutes resemble each other. */
interface Unit {
  completed: number;
  sumMs: number;
  count: number;
  errors: number;
}

/** One route in a range, or the whole: its sums, and those of each bucket. */
class RouteRange extends RouteWindow {
  /** By the beginning of the bucket: rows of several pods are added. */
  readonly units = new Map<number, Unit>();

  take({ at, window }: ReadBucket, route: string | null): void {
    const { completed, sumMs, count, errors } = this;
    const before: Unit = { completed, sumMs, count, errors };
    window.addTo(this, route);
    const unit = getOrAdd(this.units, at, () => ({ completed: 0, sumMs: 0, count: 0, errors: 0 }));
    for (const key of ['completed', 'sumMs', 'count', 'errors'] as const) unit[key] += this[key] - before[key];
  }
}

class SiteRange implements SiteSums {
  readonly process = new ProcessSums();
  readonly whole = new RouteRange();
  readonly routes = new Map<string, RouteRange>();
  readonly releases = new Set<string>();
  complete = true;

  constructor(readonly range: TimeRange) {}

  /** null: all routes together. */
  openRange(route: string | null): RouteRange {
    return route === null ? this.whole : getOrAdd(this.routes, route, () => new RouteRange());
  }
}

export async function compareRanges(
  source: HistorySource,
  ranges: ComparedRanges,
  route: string | null,
  nowMs: number,
): Promise<PerfComparison> {
  const tier = findTier(Math.min(ranges.before.from, ranges.after.from), nowMs);
  const read = (side: 'before' | 'after'): Promise<SiteRange> =>
    readSite(source, tier, wholeBuckets(ranges[side], tier, nowMs), ranges.releases?.[side] ?? null);
  const [before, after] = [await read('before'), await read('after')];
  const names = [...new Set([...before.routes.keys(), ...after.routes.keys()])];
  const counted = names.filter(isCounted);
  const loop = findLoopCause(before, after);
  const compared: RouteComparison[] = [];
  const turns = new Turns();
  for (const name of route === null ? names : [route]) {
    compared.push(compareRoute(name, [name], before, after, loop));
    await turns.rest();
  }
  compared.sort((a, b) => weigh(b) - weigh(a));
  const whole = route === null ? compareRoute(null, counted, before, after, loop) : compared[0]!;
  const comparison = {
    before: { ...before.range, releases: [...before.releases] },
    after: { ...after.range, releases: [...after.releases] },
    whole,
    routes: route === null || names.includes(route) ? compared : [],
    caveats: listCaveats(ranges, before, after, whole),
  };
  return { ...comparison, text: comparisonText(comparison) };
}

/** Extends the range to whole buckets: from the one that `from` is in to the last that begins before `to`, the running one included. */
function wholeBuckets({ from, to }: TimeRange, tier: Tier, nowMs: number): TimeRange {
  const { stepMs } = findRule(tier);
  const begin = startBucket(from, stepMs);
  if (from === to) return { from: begin, to: begin };
  const end = startBucket(Math.min(to, nowMs), stepMs) + (to >= nowMs ? stepMs : 0);
  return { from: begin, to: Math.max(end, begin + stepMs) };
}

async function readSite(
  source: HistorySource,
  tier: Tier,
  range: TimeRange,
  release: string | null,
): Promise<SiteRange> {
  let site = new SiteRange(range);
  const isRead = await source.read(tier, range, () => {
    site = new SiteRange(range);
    return (bucket) => {
      if (release !== null && bucket.release !== release) return;
      site.process.add(bucket.window.process);
      if (bucket.release !== '') site.releases.add(bucket.release);
      for (const name of [null, ...bucket.window.routeNames]) site.openRange(name).take(bucket, name);
    };
  });
  site.complete = isRead;
  return site;
}

/** `parts`: the route itself; or for the whole, with null, all routes that count. */
function compareRoute(
  route: string | null,
  parts: readonly string[],
  before: SiteRange,
  after: SiteRange,
  loop: string,
): RouteComparison {
  const [was, is] = [before.openRange(route), after.openRange(route)];
  const change = (isRelative: boolean, read: CountAndSum): Change =>
    computeChange([...was.units.values()], [...is.units.values()], isRelative, read);
  const latency = change(true, ({ completed, sumMs }) => [completed, sumMs]);
  return {
    route,
    before: computeRangeFigures(was),
    after: computeRangeFigures(is),
    latency,
    errorRate: change(false, ({ count, errors }) => [count, errors]),
    because: latency.value === 0 ? [] : explainChange(before, after, parts, loop),
  };
}

const ALPHA = 0.05;
const UNKNOWN = [-Infinity, Infinity] as const;

type CountAndSum = (unit: Unit) => readonly [count: number, sum: number];

/** The change of a mean, relative to what it was, or the difference of two shares. */
function computeChange(
  before: readonly Unit[],
  after: readonly Unit[],
  isRelative: boolean,
  read: CountAndSum,
): Change {
  const computeMean = (units: readonly Unit[]): RatioMean =>
    ratioMean(units.map((unit) => read(unit)).flatMap(([count, sum]) => (count > 0 ? [{ count, sum }] : [])));
  const [was, is] = [computeMean(before), computeMean(after)];
  if (was.count === 0 || is.count === 0 || (isRelative && was.mean === 0)) return { value: 0, ci: UNKNOWN };
  const value = isRelative ? is.mean / was.mean - 1 : is.mean - was.mean;
  if (was.units < 2 || is.units < 2) return { value, ci: UNKNOWN };
  const [control, treatment] = [estimateMean(was), estimateMean(is)];
  if (isRelative) return { value, ci: notBelow(-1, fixedHorizon(relativeLift(control, treatment), ALPHA)).ci };
  const error = Math.sqrt(control.variance + treatment.variance);
  // Buckets that all agree, for example without any error, have no spread.
  const margin = error === 0 ? 0 : studentQuantile(ALPHA / 2, welchDegrees(control, treatment)) * error;
  return { value, ci: [value - margin, value + margin] };
}

/** Orders routes by how much more or less time all their requests take. */
function weigh({ before, after }: RouteComparison): number {
  return Math.abs((after.durationMs.mean - before.durationMs.mean) * (after.count - after.aborted));
}

/** Smaller relative changes of the traffic are not mentioned. */
const TRAFFIC = 0.2;

/** `', traffic +40 %'` */
function describeTraffic({ before, after }: ComparedRanges, whole: RouteComparison): string {
  const rates = [whole.before.count / (before.to - before.from), whole.after.count / (after.to - after.from)] as const;
  const change = rates[1] / rates[0] - 1;
  return Math.abs(change) < TRAFFIC ? '' : `, traffic ${change > 0 ? '+' : ''}${Math.round(change * 100)} %`;
}

function listCaveats(ranges: ComparedRanges, before: SiteRange, after: SiteRange, whole: RouteComparison): string[] {
  const caveats = [...ranges.caveats];
  const isKnown = whole.before.count > 0 && whole.after.count > 0;
  if (ranges.releases?.overlap === false && isKnown)
    caveats.push(`Confounded: deployed to all pods at once${describeTraffic(ranges, whole)}.`);
  if (!before.complete || !after.complete)
    caveats.push('The store could not be read: only what this process remembers is compared.');
  if (whole.before.count === 0) caveats.push('Nothing is known of the range before.');
  if (whole.after.count === 0) caveats.push('Nothing is known of the range after.');
  if (isKnown && whole.latency.ci[0] === -Infinity) caveats.push('Too few windows for an interval.');
  return caveats;
}
