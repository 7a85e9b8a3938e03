import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { epochMsOf } from '../core/clock.js';
import type { ExperimentAnswers } from '../ports/experiment-answers.js';
import type { HistoryReader } from '../ports/history.js';
import type { LatencyFigures } from '../ports/latency-figures.js';
import type { Overview } from '../ports/overview.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import { displayJson } from '../core/printable.js';
import type { Rejected, RejectedList } from '../ports/rejected.js';
import type { PerfSnapshot, UserUse } from '../core/snapshot.js';
import type { Steps } from '../core/turns.js';
import { userRedactor, type UserList } from '../ports/users.js';
import type { PerfApplication } from '../request/application.js';
import { countTroubles, nameInHistory, readEarlierCounts, type EarlierCounts } from './earlier-counts.js';
import { refreshFleet, type FleetFigures } from './fleet-figures.js';
import { MeasuredWork } from './measured-work.js';
import { describeOddPods } from './odd-pods.js';
import { PastFigures } from './past-figures.js';
import { RecentCounts } from './recent-counts.js';
import type { RecentRecords } from './recent-records.js';
import { describeRoute } from './route-detail.js';
import { describeVerdicts } from './problems.js';
import { Refreshed } from './refreshed.js';
import {
  findRoutes,
  makeRow,
  measureOwnMs,
  rounded,
  sumOthers,
  sumTotals,
  takeWithin,
  type ShownRoute,
} from './route-rows.js';
import { collectSections, NO_SECTIONS } from './sections.js';
import { readExperiments, readRejected } from './slow-figures.js';
import { Traffic } from './traffic.js';
import type { DashboardData, ExperimentRow, Past, RouteDetail, Scope, Sections } from './view.js';

/** Several pages share what was made for one of them. */
const MAX_AGE_MS = 1_500;
/** A sample that is dear, as with ten thousand routes, is kept longer: looking takes about a fortieth of the event loop's time. */
const AGE_OF_COST = 40;
const LONGEST_AGE_MS = 10_000;
/** Bytes of sections and routes; with what is found and what is around them, an answer has at most 256 KB. */
const MAX_BYTES = 190_000;
const MAX_FOUND_BYTES = 40_000;
const MAX_USERS = 50;
const NO_DETAIL = { statuses: {}, distribution: [], users: [], upstream: [], blocks: [] };

/** A page's question. */
export interface Question {
  /** Null: all pods where a history is shared. */
  readonly scope: Scope | null;
  readonly filter: string;
  /** The route that is open: its row's id, or its name. */
  readonly routeId: string | null;
}

/** The parts of the application that the page shows; null where a feature is off. */
export interface DashboardSources {
  readonly overview: Overview;
  readonly latency: LatencyFigures | null;
  readonly times: RouteTimeFigures | null;
  readonly users: UserList | null;
  readonly history: HistoryReader | null;
  readonly experiments: ExperimentAnswers | null;
  readonly rejected: RejectedList | null;
}

/** One sample, shared by all viewers. */
interface Sample {
  readonly snapshot: PerfSnapshot;
  readonly shown: readonly ShownRoute[];
  readonly ownMs: ReadonlyMap<string, number>;
  readonly data: Omit<DashboardData, 'tookMs' | 'found' | 'detail'>;
}

/** Makes the page's figures when a viewer polls, and only then. */
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
  private sample: Sample | null = null;
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
    this.experiments = new Refreshed(host, 'experiments', [], () => readExperiments(sources.experiments));
    this.rejected = new Refreshed(host, 'rejects', [], () => readRejected(sources.rejected));
    this.past = new PastFigures(host, sources.history);
    this.fleet = refreshFleet(host, sources.history);
  }

  /** {@link DashboardData} as JSON. Takes a new sample where the last one is old. */
  async answer({ scope, filter, routeId }: Question): Promise<string> {
    const isFleet = this.sources.history?.shared === true && scope !== 'pod';
    const fleet = isFleet ? await this.fleet.settled() : null;
    const sampleMs = isFleet ? 0 : await this.refreshSample();
    const startedMs = this.host.nowMs();
    const wanted = filter.toLowerCase();
    const data = fleet === null ? this.answerForPod(wanted, routeId) : this.answerForFleet(fleet, wanted, routeId);
    data.tookMs = rounded(sampleMs + this.host.nowMs() - startedMs);
    return displayJson(data);
  }

  /** Waits for what polls get one by one. The last hours are of one route, or of all. */
  async answerOnce(route: string | null, scope: Scope | null): Promise<{ data: DashboardData; past: Past }> {
    const past = await this.past.refresh(route).settled();
    await Promise.all([this.experiments.settled(), this.rejected.settled()]);
    return { data: JSON.parse(await this.answer({ scope, filter: '', routeId: null })) as DashboardData, past };
  }

  private answerForPod(wanted: string, routeId: string | null): DashboardData {
    const { snapshot, shown, ownMs, data } = this.sample!;
    const all =
      wanted === '' ? null : findRoutes(snapshot.routes, wanted).map((one) => makeRow(one, this.recent, ownMs));
    const found = all && takeWithin(all, MAX_FOUND_BYTES).taken;
    const detail = routeId === null ? null : this.describeRoute(routeId, found ?? shown);
    return { ...data, tookMs: 0, found: found?.map(({ row }) => row) ?? null, detail };
  }

  /** Each pod of a shared history answers it alike. */
  private answerForFleet(fleet: FleetFigures, wanted: string, routeId: string | null): DashboardData {
    const { pods, rows, overMs, totals, traffic } = fleet;
    const found = wanted === '' ? null : rows.filter(({ row }) => row.name.toLowerCase().includes(wanted));
    const { taken, left } = takeWithin(rows, MAX_BYTES);
    const open = rows.find(({ row }) => row.id === routeId)?.row;
    const now = [...describeVerdicts(this.sources.history!.verdicts(), this.nameUser), ...describeOddPods(pods)];
    return {
      ...this.head('fleet', Date.now()),
      pods,
      overMs,
      totals,
      traffic,
      tookMs: 0,
      container: [],
      routes: taken.map(({ row }) => row),
      other: left,
      found: found && takeWithin(found, MAX_FOUND_BYTES).taken.map(({ row }) => row),
      sections: { ...NO_SECTIONS, now, past: this.past.refresh(null).now() },
      detail: open === undefined ? null : { ...NO_DETAIL, id: open.id, past: this.past.refresh(open.name).now() },
    };
  }

  private head(scope: Scope, at: number): Pick<DashboardData, 'at' | 'scope' | 'isShared' | 'assets' | 'process'> {
    const { release } = this.host;
    const startedAt = Math.round(epochMsOf(0));
    const own = { pod: hostname(), pid: process.pid, release, node: process.version, startedAt };
    return { at, scope, isShared: this.sources.history?.shared === true, assets: this.assets, process: own };
  }

  /**
   * One sample for all polls meanwhile, made in turns: the application's requests wait for none of it as a whole.
   * Resolves to what it has cost the event loop, milliseconds: 0 where the last one is young enough.
   */
  private refreshSample(): Promise<number> {
    if (this.host.nowMs() - this.takenAtMs < this.maxAgeMs) return Promise.resolve(0);
    return (this.sampling ??= this.takeSample().finally(() => (this.sampling = null)));
  }

  private async takeSample(): Promise<number> {
    const { nowMs } = this.host;
    const takenAtMs = nowMs();
    const work = new MeasuredWork(nowMs);
    const snapshot = await work.inTurns(this.sources.overview.snapshotSteps());
    const isFirst = this.traffic.isAfterGap(takenAtMs);
    const sinceMs = takenAtMs - this.startedMs;
    const earlier = isFirst ? await readEarlierCounts(snapshot, this.sources.history, sinceMs) : null;
    this.sample = await work.inTurns(this.describe(snapshot, takenAtMs, earlier));
    this.maxAgeMs = Math.min(LONGEST_AGE_MS, Math.max(MAX_AGE_MS, work.ms * AGE_OF_COST));
    this.takenAtMs = takenAtMs;
    return work.ms;
  }

  /** `earlier`: of the time before this sample, without a viewer. */
  private *describe(snapshot: PerfSnapshot, takenAtMs: number, earlier: EarlierCounts | null): Steps<Sample> {
    const { at, eventLoop } = snapshot;
    const { latency, times } = this.sources;
    this.recent.next(takenAtMs, earlier?.spanMs ?? null);
    yield* this.traffic.add(at, takenAtMs, latency?.totals() ?? null, eventLoop, earlier);
    const ownMs = latency === null || times === null ? new Map() : yield* measureOwnMs(latency.totals(), times);
    for (const { target, calls, errors } of snapshot.upstream) this.recent.count(`upstream ${target}`, [calls, errors]);
    const { failed = 0, dropped = 0 } = snapshot.defer ?? {};
    this.recent.count('defer', [failed, dropped]);
    const rows: ShownRoute[] = [];
    for (const found of findRoutes(snapshot.routes, '')) {
      yield;
      const before = earlier?.routes.get(found.snapshot);
      this.recent.count(found.key, countTroubles(found.snapshot), before && countTroubles(before));
      rows.push(makeRow(found, this.recent, ownMs));
    }
    yield;
    const sections = this.describeSections(snapshot, rows);
    yield;
    const bytes = Buffer.byteLength(displayJson(sections));
    yield;
    const { taken: shown } = takeWithin(rows, MAX_BYTES - bytes);
    // Later than now are points of before the wall clock went back.
    const isPast = ([pointAt]: readonly [number, ...unknown[]]): boolean => pointAt <= at;
    const data = {
      ...this.head('pod', at),
      pods: null,
      overMs: snapshot.routes[0]?.over.map(({ ms }) => ms) ?? [],
      routes: shown.map(({ row }) => row),
      other: sumOthers(snapshot, shown),
      totals: latency === null ? null : sumTotals(snapshot),
      traffic: this.traffic.points.filter(isPast),
      container: this.records.container.filter(isPast),
      sections,
    };
    return { snapshot, shown, ownMs, data };
  }

  private describeSections(snapshot: PerfSnapshot, routes: readonly ShownRoute[]): Sections {
    const { records, recent, nameUser } = this;
    const reasons = this.sources.overview.findReasons(snapshot);
    const verdicts = this.sources.history?.verdicts() ?? [];
    const [blocks, rejected] = [records.blocks(), this.rejected.now()];
    return collectSections(
      { snapshot, reasons, verdicts, nameUser, routes, blocks, recent, rejected },
      {
        failedWork: records.failedWork,
        users: this.redacted(snapshot.users.slice(0, MAX_USERS)),
        experiments: this.experiments.now(),
        past: this.past.refresh(null).now(),
      },
    );
  }

  private describeRoute(id: string, shown: readonly ShownRoute[]): RouteDetail | null {
    const route = shown.find(({ row }) => row.id === id) ?? shown.find(({ row }) => row.name === id);
    if (route === undefined) return null;
    const { name } = route.row;
    const users = this.sources.users?.list('totalMs', name) ?? [];
    const blocks = this.records.blocks().filter(({ row }) => row.route === name);
    return describeRoute(route, this.sources.latency?.histograms() ?? [], {
      users: this.redacted(users.slice(0, 10)),
      blocks: blocks.map(({ row }) => row.id),
      past: this.past.refresh(nameInHistory(route.snapshot)).now(),
    });
  }

  private redacted(users: readonly UserUse[]): UserUse[] {
    return users.map((user) => ({ ...user, unit: this.nameUser(user.unit) }));
  }

  /** With `users.redact` an id is a hash already, the one that the log has. */
  private readonly nameUser = (unit: string): string =>
    this.redactUsers && (this.sources.users?.redact ?? null) === null ? this.redact(unit) : unit;
}
