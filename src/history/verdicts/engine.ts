import { createHash } from 'node:crypto';
import { getOrAdd } from '../../core/get-or-add.js';
import { pushBounded } from '../../core/push-bounded.js';
import type { UserUse } from '../../core/snapshot.js';
import type { Verdict } from '../../core/verdict.js';
import type { SiteSums } from '../compare/because.js';
import { ReleaseRuns } from '../compare/ranges.js';
import { DAY_MS, HOUR_MS, WINDOW_MS } from '../rows/tiers.js';
import { ProcessSums, type RouteSums } from '../rows/window.js';
import type { Steps } from '../../core/turns.js';
import {
  assess,
  averageRoutes,
  computeChange,
  computeLeft,
  findReasons,
  findSignificant,
  isFarBeyond,
  type Assessment,
} from './assess.js';
import type { JudgedWindow } from './judged-window.js';
import { METRICS, type MetricRule } from './metrics.js';
import { HourSums, RECENT, RouteTrack } from './route-track.js';
import { findScope } from './scope.js';
import { openedText, resolvedText, type Ending, type Fix } from '../text.js';
import { WeekProfile } from './week-profile.js';

const MAX_ACTIVE = 20;
/** Resolved ones are kept for so long, and so many. */
const KEPT_MS = 7 * DAY_MS;
const MAX_KEPT = 100;
/** A route that follows within this time belongs to the same change. */
const JOINS_MS = HOUR_MS;
/** Less of the change is left than this, for {@link RECENT} units: it is over. */
const OVER = 0.5;
/** A change that lasts so long is the usual. */
const USUAL_MS: Record<Verdict['kind'], number> = { worse: 7 * DAY_MS, better: DAY_MS };
/** Metrics whose improvement is reported. */
const BETTER: ReadonlySet<string> = new Set(['latency', 'errors']);

interface Active {
  verdict: Verdict;
  /** As it was when the verdict opened, by route. */
  readonly moved: Map<string, Assessment>;
  readonly openedAt: number;
  calm: number;
}

/** Judges window after window: what became worse or better, and what is over. Pure: time comes with the windows. */
export class VerdictEngine {
  private readonly tracks = new Map<string, RouteTrack>();
  private readonly profile = new WeekProfile();
  private readonly windows: JudgedWindow[] = [];
  private readonly processBefore = new HourSums(ProcessSums);
  private readonly releases = new ReleaseRuns();
  private active: Active[] = [];
  private resolved: Verdict[] = [];

  /** `listUsers`: who has used a route in the last ten minutes. */
  constructor(private readonly listUsers: (route: string) => readonly UserUse[]) {}

  /** Active ones first, then the resolved; the newest first. */
  get verdicts(): readonly Verdict[] {
    const active = this.active.map(({ verdict }) => verdict).toSorted((a, b) => b.since - a.since);
    return [...active, ...this.resolved.toReversed()];
  }

  /** Verdicts that another process has reported of the same windows: they stay as they were reported. */
  adopt(reported: readonly Verdict[]): void {
    const known = new Map(reported.map((verdict) => [verdict.id, verdict]));
    for (const one of this.active) {
      const before = known.get(one.verdict.id);
      if (before?.state === 'active') one.verdict = before;
      known.delete(one.verdict.id);
    }
    this.resolved = [...known.values()].filter(({ state }) => state === 'resolved').toReversed();
  }

  /** An hour of the past, for the usual of the week. */
  learnHour(at: number, routes: Iterable<readonly [string, RouteSums]>): void {
    for (const [route, sums] of routes) this.profile.add(at, route, sums);
  }

  /** Judges a window, each later than the one before. Returns the verdicts that it opens and resolves. */
  *judge(window: JudgedWindow): Steps<Verdict[]> {
    this.releases.take({ at: window.at, stepMs: WINDOW_MS, releases: window.releases });
    const [oldest] = this.windows;
    const isCalm = this.windows.length === RECENT && this.active.length === 0;
    if (isCalm) this.processBefore.add(oldest!.at, oldest!.process);
    pushBounded(this.windows, window, RECENT);
    const covered = this.findCovered(() => true);
    const fresh = new Set<string>();
    for (const [route, sums] of window.routes) {
      if (this.findTrack(route).take(window.at, sums, window.process.observedMs, !covered.has(route))) fresh.add(route);
      this.profile.add(window.at, route, sums);
      yield;
    }
    const changed = this.resolve(window, fresh);
    for (const [index, rule] of METRICS.entries()) changed.push(...(yield* this.open(rule, index, window, fresh)));
    this.resolved = this.resolved.filter(({ since }) => since >= window.at - KEPT_MS).slice(-MAX_KEPT);
    return changed;
  }

  private findTrack(route: string): RouteTrack {
    return getOrAdd(this.tracks, route, () => new RouteTrack());
  }

  /** Routes of active verdicts, and those that they blame, where they hide the route. */
  private findCovered(hides: (active: Active, route: string) => boolean): Set<string> {
    return new Set(
      this.active.flatMap((active) =>
        [...active.moved.keys(), ...active.verdict.because.map(({ name }) => name)].filter((route) =>
          hides(active, route),
        ),
      ),
    );
  }

  /**
   * One change is reported once, by its first metric. An older verdict hides neither new errors nor what is far worse by its own
   * metric; an improvement hides no worsening of another one.
   */
  private findReported(
    kind: Verdict['kind'],
    { metric }: MetricRule,
    at: number,
    all: readonly Assessment[],
  ): Set<string> {
    return this.findCovered(({ verdict, moved, openedAt }, route) => {
      if (openedAt === at) return true;
      if (verdict.metric !== metric) return verdict.kind === 'better' ? kind === 'better' : metric !== 'errors';
      const now = verdict.kind === 'worse' ? all.find((one) => one.route === route) : undefined;
      return now === undefined || !isFarBeyond(moved.get(route), now);
    });
  }

  private *open(rule: MetricRule, index: number, window: JudgedWindow, fresh: ReadonlySet<string>): Steps<Verdict[]> {
    const all: Assessment[] = [];
    for (const [route, track] of this.tracks) {
      const one = track.isCurrent(window.at) ? assess(route, track, index, this.profile) : null;
      if (one !== null) all.push(one);
      yield;
    }
    const significant = findSignificant(all);
    const opened: Verdict[] = [];
    for (const kind of ['worse', 'better'] as const) {
      if (kind === 'better' && !BETTER.has(rule.metric)) continue;
      const covered = this.findReported(kind, rule, window.at, all);
      const sure = significant.filter(({ route }) => fresh.has(route) && !covered.has(route));
      const isOne = ({ before, now }: Assessment): boolean => now > before === (kind === 'worse');
      if (!sure.some(isOne)) continue;
      const likely = all.filter((one) => one.likely && isOne(one) && !covered.has(one.route));
      const moved = [...new Set([...sure.filter(isOne), ...likely])].toSorted((a, b) => b.count - a.count);
      const verdict = this.openOne(kind, rule, moved, all, window);
      if (verdict !== null) opened.push(verdict);
    }
    return opened;
  }

  private openOne(
    kind: Verdict['kind'],
    rule: MetricRule,
    moved: readonly Assessment[],
    all: readonly Assessment[],
    window: JudgedWindow,
  ): Verdict | null {
    const routes = moved.map(({ route }) => route);
    const { before, after } = this.sides(window.at);
    const because = findReasons(moved, before, after);
    const same = this.active.find(
      (one) =>
        one.verdict.kind === kind &&
        one.verdict.metric === rule.metric &&
        window.at - one.verdict.since <= JOINS_MS &&
        !routes.some((route) => one.moved.has(route)) &&
        (one.verdict.scope === 'site' || one.verdict.because[0]?.name === because[0]?.name),
    );
    if (same !== undefined) {
      for (const one of moved) same.moved.set(one.route, one);
      same.verdict = { ...same.verdict, routes: [...same.moved.keys()] };
      return null;
    }
    if (this.active.length >= MAX_ACTIVE) return null;
    const { windows, listUsers } = this;
    const scope = findScope({ moved, all, before, after, windows, because, listUsers });
    const since = Math.min(...moved.map((one) => one.since));
    const release = this.releases.findBefore(since);
    const against: Verdict['against'] = release !== null ? 'release' : moved[0]!.usual.shape === null ? 'day' : 'week';
    const id = createHash('sha256').update(`${kind} ${rule.metric} ${since} ${routes[0]}`).digest('hex').slice(0, 12);
    const text = openedText({ kind, since, scope, moved, because, against, release });
    const parts = { scope: scope.scope, who: scope.name, metric: rule.metric, routes, against, because, text };
    const verdict: Verdict = { id, kind, state: 'active', since, ...parts, ...computeChange(moved) };
    const byRoute = new Map(moved.map((one) => [one.route, one]));
    this.active.push({ verdict, moved: byRoute, openedAt: window.at, calm: 0 });
    return verdict;
  }

  /** The usual of the last 24 hours, and the last windows. */
  private sides(at: number): { before: SiteSums; after: SiteSums } {
    const [before, after] = [new Map<string, RouteSums>(), new Map<string, RouteSums>()];
    for (const [route, track] of this.tracks) {
      before.set(route, track.before.total());
      if (track.isCurrent(at)) after.set(route, track.now());
    }
    const process = new ProcessSums();
    for (const window of this.windows) process.add(window.process);
    return { before: { process: this.processBefore.total(), routes: before }, after: { process, routes: after } };
  }

  private resolve({ at }: JudgedWindow, fresh: ReadonlySet<string>): Verdict[] {
    const over: Verdict[] = [];
    for (const one of this.active) {
      const ending = this.findEnding(one, at, fresh);
      if (ending === null) continue;
      const fix = ending === 'over' ? this.findFix(one, at) : null;
      const text = resolvedText(one.verdict, at + WINDOW_MS, ending, fix);
      one.verdict = { ...one.verdict, state: 'resolved', text };
      for (const route of one.moved.keys()) {
        const track = this.findTrack(route);
        if (ending === 'usual') track.relearn();
        // Units that were judged may not be judged again.
        if (ending !== 'turned') track.recent.length = 0;
      }
      over.push(one.verdict);
    }
    this.active = this.active.filter(({ verdict }) => verdict.state === 'active');
    this.resolved.push(...over);
    return over;
  }

  /** The release that came just before it was over; null where none did, or it was there when it began. */
  private findFix({ verdict, moved }: Active, at: number): Fix | null {
    const release = this.releases.findBefore(at - (RECENT - 1) * WINDOW_MS);
    if (release === null || release.at <= verdict.since) return null;
    const all = [...moved.values()] as [Assessment, ...Assessment[]];
    const readLevel = ({ rule, route }: Assessment) => rule.level(this.findTrack(route).recent.at(-1)!);
    const now = averageRoutes(all, readLevel);
    const before = averageRoutes(all, (one) => (readLevel(one) === null ? null : one.before));
    return { release: release.name, change: now === null || before === null ? 0 : all[0].rule.change(before, now) };
  }

  private findEnding(one: Active, at: number, fresh: ReadonlySet<string>): Ending | null {
    const left = this.computeLeft(one, fresh);
    if (left !== null) one.calm = left < OVER ? one.calm + 1 : 0;
    if (at - one.verdict.since >= USUAL_MS[one.verdict.kind]) return 'usual';
    if (left !== null && one.calm >= RECENT) return left <= -1 ? 'turned' : 'over';
    return [...one.moved.keys()].some((route) => this.findTrack(route).isCurrent(at, DAY_MS)) ? null : 'unused';
  }

  /** The share that is left, by routes that have a new unit; null when none has. */
  private computeLeft({ moved }: Active, fresh: ReadonlySet<string>): number | null {
    return averageRoutes(moved.values(), (one) => {
      const unit = fresh.has(one.route) ? this.findTrack(one.route).recent.at(-1) : undefined;
      return unit === undefined ? null : computeLeft(one, unit);
    });
  }
}
