import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { epochMsOf } from '../core/clock.js';
import type { ExperimentAnswers } from '../ports/experiment-answers.js';
import type { HistoryReader } from '../ports/history.js';
import type { LatencyFigures } from '../ports/latency-figures.js';
import type { Overview } from '../ports/overview.js';
import { displayJson } from '../core/printable.js';
import type { Rejected, RejectedList } from '../ports/rejected.js';
import type { PerfSnapshot, UserUse } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import { userRedactor, type UserList } from '../ports/users.js';
import type { PerfApplication } from '../request/application.js';
import { earlierCounts, historyNameOf, troublesOf, type EarlierCounts } from './earlier-counts.js';
import { fleetFigures, type FleetFigures } from './fleet-figures.js';
import { MeasuredWork } from './measured-work.js';
import { oddProblems } from './odd-pods.js';
import { PastFigures } from './past-figures.js';
import { RecentCounts } from './recent-counts.js';
import type { RecentRecords } from './recent-records.js';
import { detailOf } from './route-detail.js';
import { verdictProblems } from './problems.js';
import { Refreshed } from './refreshed.js';
import { foundRoutes, otherRoutes, rounded, shownRoute, totalsOf, withinBytes, type ShownRoute } from './route-rows.js';
import { NO_SECTIONS, sectionsOf } from './sections.js';
import { experimentsOf, rejectedOf } from './slow-figures.js';
import { Traffic } from './traffic.js';
import type { DashboardData, ExperimentRow, OtherRoutes, Past, Scope } from './view.js';

/** Several pages share what was made for one of them. */
const MAX_AGE_MS = 1_500;
/** A sample that is dear, as with ten thousand routes, is kept longer: looking takes about a fortieth of the event loop's time. */
const AGE_OF_COST = 40;
const LONGEST_AGE_MS = 10_000;
/** Bytes of sections and routes; with what is found and what stands around them, an answer has at most 256 KB. */
const MAX_BYTES = 190_000;
const MAX_FOUND_BYTES = 40_000;
const MAX_USERS = 50;

/** A page's question. */
export interface Question {
  /** Null: all pods where a history is shared. */
  readonly scope: Scope | null;
  readonly filter: string;
  /** The route that is open. */
  readonly routeId: string | null;
}

/** The parts of the application that the page shows; null where a feature is off. */
export interface DashboardSources {
  readonly overview: Overview;
  readonly latency: LatencyFigures | null;
  readonly users: UserList | null;
  readonly history: HistoryReader | null;
  readonly experiments: ExperimentAnswers | null;
  readonly rejected: RejectedList | null;
}

/** The page's figures: made when somebody asks, and only then. */
export class DashboardView {
  private readonly redact = userRedactor(randomBytes(16).toString('hex'));
  private readonly recent = new RecentCounts();
  private readonly traffic = new Traffic();
  private readonly experiments: Refreshed<ExperimentRow[]>;
  private readonly rejected: Refreshed<Rejected[]>;
  private readonly past: PastFigures;
  private readonly fleet: Refreshed<FleetFigures>;
  /** The application, not the process. */
  private readonly startedMs: number;
  private shown: readonly ShownRoute[] = [];
  /** As JSON: made once for all that look. */
  private rows = '';
  private sections = '';
  private other: OtherRoutes | null = null;
  private snapshot: PerfSnapshot | null = null;
  private sampling: Promise<number> | null = null;
  private takenAtMs = -Infinity;
  private maxAgeMs = MAX_AGE_MS;

  constructor(
    private readonly host: PerfApplication,
    private readonly sources: DashboardSources,
    private readonly records: RecentRecords,
    private readonly assets: string,
    private readonly redactUsers: boolean,
  ) {
    this.startedMs = host.nowMs();
    this.experiments = new Refreshed(host, 'experiments', [], () => experimentsOf(sources.experiments));
    this.rejected = new Refreshed(host, 'rejects', [], () => rejectedOf(sources.rejected));
    this.past = new PastFigures(host, sources.history);
    this.fleet = fleetFigures(host, sources.history);
  }

  /** {@link DashboardData} as JSON, whole. Takes a new sample where the last one is old. */
  async answer({ scope, filter, routeId }: Question): Promise<string> {
    if (this.scopeFor(scope) === 'fleet') return this.answerOfFleet(await this.fleet.settled(), filter, routeId);
    const sampleMs = await this.sampled();
    const startedMs = this.host.nowMs();
    const snapshot = this.snapshot!;
    const found = filter === '' ? null : this.find(snapshot, filter);
    // Later than now are points of before the wall clock went back.
    const isPast = ([at]: readonly [number, ...unknown[]]): boolean => at <= snapshot.at;
    const others: Omit<DashboardData, 'routes' | 'sections'> = {
      ...this.head('pod', snapshot.at),
      pods: null,
      overMs: snapshot.routes[0]?.over.map(({ ms }) => ms) ?? [],
      other: this.other,
      found: found?.map(({ row }) => row) ?? null,
      totals: this.sources.latency === null ? null : totalsOf(snapshot),
      traffic: this.traffic.points.filter(isPast),
      container: this.records.container.filter(isPast),
      detail: routeId === null ? null : this.detail(routeId, found ?? this.shown),
    };
    others.tookMs = rounded(sampleMs + this.host.nowMs() - startedMs);
    return `${displayJson(others).slice(0, -1)},"routes":[${this.rows}],"sections":${this.sections}}`;
  }

  /** Each pod of a shared history answers it alike. */
  private answerOfFleet(fleet: FleetFigures, filter: string, routeId: string | null): string {
    const startedMs = this.host.nowMs();
    const wanted = filter.toLowerCase();
    const found = wanted === '' ? null : fleet.rows.filter(({ name }) => name.toLowerCase().includes(wanted));
    const [routes, other] = withinBytes(fleet.rows, MAX_BYTES);
    const open = fleet.rows.find(({ id }) => id === routeId);
    const verdicts = this.sources.history?.verdicts() ?? [];
    const data: DashboardData = {
      ...this.head('fleet', Date.now()),
      pods: fleet.pods,
      overMs: fleet.overMs,
      routes,
      other,
      found: found && withinBytes(found, MAX_FOUND_BYTES)[0],
      totals: fleet.totals,
      traffic: fleet.traffic,
      container: [],
      sections: {
        ...NO_SECTIONS,
        now: [...verdictProblems(verdicts, this.nameOf), ...oddProblems(fleet.pods)],
        past: this.past.of(null).now(),
      },
      detail:
        open === undefined
          ? null
          : {
              id: open.id,
              statuses: {},
              distribution: [],
              users: [],
              upstream: [],
              blocks: [],
              past: this.past.of(open.name).now(),
            },
    };
    data.tookMs = rounded(this.host.nowMs() - startedMs);
    return displayJson(data);
  }

  private scopeFor(asked: Scope | null): Scope {
    return this.sources.history?.shared === true && asked !== 'pod' ? 'fleet' : 'pod';
  }

  private head(scope: Scope, at: number) {
    const { release } = this.host;
    const startedAt = Math.round(epochMsOf(0));
    const own = { pod: hostname(), pid: process.pid, release, node: process.version, startedAt };
    return { at, scope, isShared: this.sources.history?.shared === true, tookMs: 0, assets: this.assets, process: own };
  }

  /** For who asks once: waits for what polls get one by one. The last hours are of one route, or of all. */
  async whole(route: string | null, scope: Scope | null): Promise<{ data: string; past: Past }> {
    const [past] = await Promise.all([
      this.past.of(route).settled(),
      this.experiments.settled(),
      this.rejected.settled(),
    ]);
    return { data: await this.answer({ scope, filter: '', routeId: null }), past };
  }

  /**
   * One sample for all that ask meanwhile, made in turns: the application's requests wait for none of it as a whole.
   * Resolves to what it has cost the event loop, milliseconds: 0 where the last one is young enough.
   */
  private sampled(): Promise<number> {
    if (this.host.nowMs() - this.takenAtMs < this.maxAgeMs) return Promise.resolve(0);
    return (this.sampling ??= this.takeSample().finally(() => (this.sampling = null)));
  }

  private async takeSample(): Promise<number> {
    const { nowMs } = this.host;
    const takenAtMs = nowMs();
    const work = new MeasuredWork(nowMs);
    const snapshot = await work.inTurns(this.sources.overview.snapshotSteps());
    const isFirst = this.traffic.isAfterGap(takenAtMs);
    const earlier = isFirst ? await earlierCounts(snapshot, this.sources.history, takenAtMs - this.startedMs) : null;
    await work.inTurns(this.show(snapshot, takenAtMs, earlier));
    this.maxAgeMs = Math.min(LONGEST_AGE_MS, Math.max(MAX_AGE_MS, work.ms * AGE_OF_COST));
    this.takenAtMs = takenAtMs;
    this.snapshot = snapshot;
    return work.ms;
  }

  /** `earlier`: of the time before this sample, where nobody has looked. */
  private *show(snapshot: PerfSnapshot, takenAtMs: number, earlier: EarlierCounts | null): Steps<void> {
    const { at, eventLoop } = snapshot;
    this.recent.next(takenAtMs, earlier?.spanMs ?? null);
    const totals = this.sources.latency?.totals() ?? null;
    yield* this.traffic.add(at, takenAtMs, totals, eventLoop, earlier);
    for (const { target, calls, errors } of snapshot.upstream) this.recent.count(`upstream ${target}`, [calls, errors]);
    const { failed = 0, dropped = 0 } = snapshot.defer ?? {};
    this.recent.count('defer', [failed, dropped]);
    const shown: ShownRoute[] = [];
    for (const found of foundRoutes(snapshot.routes, '')) {
      yield;
      const before = earlier?.routes.get(found.snapshot);
      this.recent.count(found.key, troublesOf(found.snapshot), before && troublesOf(before));
      shown.push(shownRoute(found, this.recent));
    }
    yield;
    const bytes = yield* this.putSections(snapshot, shown);
    this.shown = yield* this.putRows(shown, MAX_BYTES - bytes);
    this.other = otherRoutes(snapshot.routes, this.shown);
  }

  /** Returns how many bytes they take. */
  private *putSections(snapshot: PerfSnapshot, routes: readonly ShownRoute[]): Steps<number> {
    const { overview, history } = this.sources;
    const { records, recent, nameOf } = this;
    const { reasons } = overview.health(snapshot);
    yield;
    const verdicts = history?.verdicts() ?? [];
    yield;
    const [blocks, rejected] = [records.blocks(), this.rejected.now()];
    const sections = sectionsOf(
      { snapshot, reasons, verdicts, nameOf, routes, blocks, recent, rejected },
      {
        failedWork: records.failedWork,
        users: this.redacted(snapshot.users.slice(0, MAX_USERS)),
        experiments: this.experiments.now(),
        past: this.past.of(null).now(),
      },
    );
    const parts: string[] = [];
    for (const [name, section] of Object.entries(sections)) {
      yield;
      parts.push(`"${name}":${displayJson(section)}`);
    }
    this.sections = `{${parts.join(',')}}`;
    return Buffer.byteLength(this.sections);
  }

  /** As many as there is room for; returns those. */
  private *putRows(shown: readonly ShownRoute[], room: number): Steps<ShownRoute[]> {
    const put: ShownRoute[] = [];
    const rows: string[] = [];
    let left = room;
    for (const route of shown) {
      yield;
      const json = displayJson(route.row);
      left -= Buffer.byteLength(json) + 1;
      if (left < 0) break;
      rows.push(json);
      put.push(route);
    }
    this.rows = rows.join(',');
    return put;
  }

  private find(snapshot: PerfSnapshot, filter: string): ShownRoute[] {
    const found = foundRoutes(snapshot.routes, filter).map((route) => shownRoute(route, this.recent));
    let left = MAX_FOUND_BYTES;
    const end = found.findIndex(({ row }) => (left -= Buffer.byteLength(JSON.stringify(row)) + 1) < 0);
    return end === -1 ? found : found.slice(0, end);
  }

  private detail(id: string, shown: readonly ShownRoute[]): DashboardData['detail'] {
    const route = shown.find(({ row }) => row.id === id);
    if (route === undefined) return null;
    const users = this.sources.users?.list('totalMs', route.row.name) ?? [];
    const blocks = this.records.blocks().filter(({ row }) => row.route === route.row.name);
    return detailOf(route, this.sources.latency?.histograms() ?? [], {
      users: this.redacted(users.slice(0, 10)),
      blocks: blocks.map(({ row }) => row.id),
      past: this.past.of(historyNameOf(route.snapshot)).now(),
    });
  }

  private redacted(users: readonly UserUse[]): UserUse[] {
    return users.map((user) => ({ ...user, unit: this.nameOf(user.unit) }));
  }

  /** With `users.redact` an id is a hash already, the one that the log tells of. */
  private readonly nameOf = (unit: string): string =>
    this.redactUsers && (this.sources.users?.redact ?? null) === null ? this.redact(unit) : unit;
}
