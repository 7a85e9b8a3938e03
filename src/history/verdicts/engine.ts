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
import { openedText, resolvedText, type Ending } from '../text.js';
import { WeekProfile } from './week-profile.js';

const MAX_ACTIVE = 20;
/** Resolved verdicts are kept for this long, and at most this many of them. */
const KEPT_MS = 7 * DAY_MS;
const MAX_KEPT = 100;
/** A route that changes so soon after a verdict may join it. */
const JOINS_MS = HOUR_MS;
/** A change is over when less than this share of it is left, {@link RECENT} times in a row. */
const OVER_SHARE = 0.5;
/** A change that lasts this long becomes the usual. */
const USUAL_MS: Record<Verdict['kind'], number> = { worse: 7 * DAY_MS, better: DAY_MS };
const IMPROVEMENTS_REPORTED: ReadonlySet<string> = new Set(['latency', 'errors']);

/** A verdict that is not resolved. */
interface Active {
  verdict: Verdict;
  /** By route, its assessment when it opened or joined the verdict. */
  readonly moved: Map<string, Assessment>;
  readonly openedAt: number;
  /** Windows with a new unit, in a row, in which less than {@link OVER_SHARE} of the change was left. */
  calm: number;
}

/** Judges window after window: opens verdicts, and resolves those that are over. Without a clock: time comes with the windows. */
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

  /** Active ones first, then resolved ones, each the newest first. */
  get verdicts(): readonly Verdict[] {
    const active = this.active.map(({ verdict }) => verdict).toSorted((a, b) => b.since - a.since);
    return [...active, ...this.resolved.toReversed()];
  }

  /**
   * Replaces own verdicts by those that the previous leader has reported for the same windows: their texts must not change. Resolves and
   * returns its active ones that are none here: a change from before the windows judged here counts as the usual.
   */
  adopt(reported: readonly Verdict[], at: number): Verdict[] {
    const known = new Map(reported.map((verdict) => [verdict.id, verdict]));
    for (const one of this.active) {
      const before = known.get(one.verdict.id);
      if (before?.state === 'active') one.verdict = before;
      known.delete(one.verdict.id);
    }
    const ended = new Map(this.resolved.map((verdict) => [verdict.id, verdict]));
    const left = [...known.values()].toReversed();
    const over = left
      .filter(({ state }) => state === 'active')
      .map((one): Verdict => ended.get(one.id) ?? { ...one, state: 'resolved', text: resolvedText(one, at, 'usual') });
    this.resolved = [...left.filter(({ state }) => state === 'resolved'), ...over];
    return over;
  }

  /** Adds an hour of past weeks, which is not judged. */
  learnHour(at: number, routes: Iterable<readonly [string, RouteSums]>): void {
    for (const [route, sums] of routes) this.profile.add(at, route, sums);
  }

  /** Judges a window, which must be later than the one before. Returns the verdicts that it opens and resolves. */
  *judge(window: JudgedWindow): Steps<Verdict[]> {
    this.releases.take({ at: window.at, stepMs: WINDOW_MS, releases: window.releases });
    const [oldest] = this.windows;
    const isCalm = this.windows.length === RECENT && this.active.length === 0;
    if (isCalm) this.processBefore.add(oldest!.at, oldest!.process);
    pushBounded(this.windows, window, RECENT);
    const covered = this.findCovered(() => true);
    /** Routes with a new unit. */
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

  /** Routes that active verdicts name or blame, and for which `hides` is true: they open no verdict of their own. */
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
   * Routes whose change is reported already. A verdict of this window hides all other changes of its routes. An older one does not hide
   * new errors, nor twice its change in the same metric; an improvement does not hide a worsening in another metric.
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

  /** Opens verdicts on one metric, for routes with a significant change together with routes that likely have the same. */
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
      if (kind === 'better' && !IMPROVEMENTS_REPORTED.has(rule.metric)) continue;
      const covered = this.findReported(kind, rule, window.at, all);
      const sure = significant.filter(({ route }) => fresh.has(route) && !covered.has(route));
      const isOfKind = ({ before, now }: Assessment): boolean => now > before === (kind === 'worse');
      if (!sure.some(isOfKind)) continue;
      const likely = all.filter((one) => one.likely && isOfKind(one) && !covered.has(one.route));
      const moved = [...new Set([...sure.filter(isOfKind), ...likely])].toSorted((a, b) => b.count - a.count);
      const verdict = this.openOne(kind, rule, moved, all, window);
      if (verdict !== null) opened.push(verdict);
    }
    return opened;
  }

  /** Null when the routes join an active verdict of the same change, and when too many are active. */
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

  /** Sums of the last 24 hours without the recent units; and of the recent units. */
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
      const text = resolvedText(one.verdict, at + WINDOW_MS, ending);
      one.verdict = { ...one.verdict, state: 'resolved', text };
      for (const route of one.moved.keys()) {
        const track = this.findTrack(route);
        if (ending === 'usual') track.relearn();
        // Units that have ended a verdict open none, unless the change has turned into its opposite.
        if (ending !== 'turned') track.recent.length = 0;
      }
      over.push(one.verdict);
    }
    this.active = this.active.filter(({ verdict }) => verdict.state === 'active');
    this.resolved.push(...over);
    return over;
  }

  /** Null while the change lasts. Counts calm windows. */
  private findEnding(one: Active, at: number, fresh: ReadonlySet<string>): Ending | null {
    const left = this.computeLeft(one, fresh);
    if (left !== null) one.calm = left < OVER_SHARE ? one.calm + 1 : 0;
    if (at - one.verdict.since >= USUAL_MS[one.verdict.kind]) return 'usual';
    if (left !== null && one.calm >= RECENT) return left <= -1 ? 'turned' : 'over';
    return [...one.moved.keys()].some((route) => this.findTrack(route).isCurrent(at, DAY_MS)) ? null : 'unused';
  }

  /** The share of the change that is left, by routes with a new unit; null without any. */
  private computeLeft({ moved }: Active, fresh: ReadonlySet<string>): number | null {
    return averageRoutes(moved.values(), (one) => {
      const unit = fresh.has(one.route) ? this.findTrack(one.route).recent.at(-1) : undefined;
      return unit === undefined ? null : computeLeft(one, unit);
    });
  }
}
