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
import { MeasuredWork } from './measured-work.js';
import { PastFigures } from './past-figures.js';
import { RecentCounts } from './recent-counts.js';
import type { RecentRecords } from './recent-records.js';
import { detailOf } from './route-detail.js';
import { Refreshed } from './refreshed.js';
import { foundRoutes, otherRoutes, rounded, shownRoute, totalsOf, type ShownRoute } from './route-rows.js';
import { sectionsOf } from './sections.js';
import { experimentsOf, rejectedOf } from './slow-figures.js';
import { Traffic } from './traffic.js';
import { REMEMBERED, Versions } from './versions.js';
import type { DashboardData, ExperimentRow, OtherRoutes, Past, Sections } from './view.js';

/** Several pages share what was made for one of them. */
const MAX_AGE_MS = 1_500;
/** What is dear to make, as with ten thousand routes, is kept longer: looking takes about a fortieth of the event loop's time. */
const AGE_OF_COST = 40;
const LONGEST_AGE_MS = 10_000;
/** Bytes of sections and routes; with what is found and what stands around them, an answer has at most 256 KB. */
const MAX_BYTES = 190_000;
const MAX_FOUND_BYTES = 40_000;
const MAX_USERS = 50;

/** What a page asks for. */
export interface Question {
  /** The cursor of its last answer; `''` at first. */
  readonly since: string;
  readonly filter: string;
  /** The route that is open. */
  readonly routeId: number | null;
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

/** What the page shows: made when somebody asks, and only then. */
export class DashboardView {
  private readonly epoch = randomBytes(4).toString('hex');
  private readonly redact = userRedactor(randomBytes(16).toString('hex'));
  private readonly ids = new Map<string, number>();
  private readonly recent = new RecentCounts();
  private readonly traffic = new Traffic();
  private readonly experiments: Refreshed<ExperimentRow[]>;
  private readonly rejected: Refreshed<Rejected[]>;
  private readonly past: PastFigures;
  private readonly rows = new Versions<number>();
  private readonly sections = new Versions<keyof Sections>();
  /** The application, not the process. */
  private readonly startedMs: number;
  private shown: readonly ShownRoute[] = [];
  private other: OtherRoutes | null = null;
  private snapshot: PerfSnapshot | null = null;
  private sampling: Promise<number> | null = null;
  private takenAtMs = -Infinity;
  private maxAgeMs = MAX_AGE_MS;
  /** Of the sample that is shown; answers tell what has changed since one. */
  private sample = 0;

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
  }

  /** {@link DashboardData} as JSON. Takes a new sample where the last one is old. */
  async answer({ since, filter, routeId }: Question): Promise<string> {
    const sampleMs = await this.sampled();
    const startedMs = this.host.nowMs();
    const snapshot = this.snapshot!;
    const after = this.positionOf(since);
    const found = filter === '' ? null : this.find(snapshot, filter);
    // Later than now are points of before the wall clock went back.
    const isNew = ([at]: readonly [number, ...unknown[]]): boolean => at > (after?.at ?? 0) && at <= snapshot.at;
    const rows = this.rows.changedSince(after?.sample ?? 0);
    const routes = rows.flatMap(([, row]) => row ?? []);
    const gone = after === null ? [] : rows.filter(([, row]) => row === null).map(([id]) => id);
    const sections = this.sections.changedSince(after?.sample ?? 0).map(([name, section]) => `"${name}":${section}`);
    const others: Omit<DashboardData, 'routes' | 'sections'> = {
      cursor: `${this.epoch}.${this.sample}.${snapshot.at}`,
      whole: after === null,
      at: snapshot.at,
      tookMs: 0,
      assets: this.assets,
      process: {
        pod: hostname(),
        pid: process.pid,
        release: this.host.release,
        node: process.version,
        startedAt: Math.round(epochMsOf(0)),
      },
      overMs: snapshot.routes[0]?.over.map(({ ms }) => ms) ?? [],
      gone,
      other: this.other,
      found: found?.map(({ row }) => row) ?? null,
      totals: this.sources.latency === null ? null : totalsOf(snapshot),
      traffic: this.traffic.points.filter(isNew),
      container: this.records.container.filter(isNew),
      detail: routeId === null ? null : this.detail(routeId, found ?? this.shown),
    };
    others.tookMs = rounded(sampleMs + this.host.nowMs() - startedMs);
    return `${displayJson(others).slice(0, -1)},"routes":[${routes.join(',')}],"sections":{${sections.join(',')}}}`;
  }

  /** For who asks once: waits for what polls get one by one. The last hours are of one route, or of all. */
  async whole(route: string | null): Promise<{ data: string; past: Past }> {
    const [past] = await Promise.all([
      this.past.of(route).settled(),
      this.experiments.settled(),
      this.rejected.settled(),
    ]);
    return { data: await this.answer({ since: '', filter: '', routeId: null }), past };
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
    this.sample += 1;
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
      shown.push(shownRoute(found, this.ids, this.recent));
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
    const reasons = overview.reasonsOf(snapshot);
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
    let bytes = 0;
    for (const [name, section] of Object.entries(sections)) {
      yield;
      bytes += this.sections.put(name as keyof Sections, section, this.sample);
    }
    return bytes;
  }

  /** As many as there is room for; returns those. */
  private *putRows(shown: readonly ShownRoute[], room: number): Steps<ShownRoute[]> {
    const put: ShownRoute[] = [];
    let left = room;
    for (const route of shown) {
      yield;
      left -= this.rows.put(route.row.id, route.row, this.sample) + 1;
      if (left < 0) break;
      put.push(route);
    }
    this.rows.keepOnly(new Set(put.map(({ row }) => row.id)), this.sample);
    return put;
  }

  private find(snapshot: PerfSnapshot, filter: string): ShownRoute[] {
    const found = foundRoutes(snapshot.routes, filter).map((route) => shownRoute(route, this.ids, this.recent));
    let left = MAX_FOUND_BYTES;
    const end = found.findIndex(({ row }) => (left -= Buffer.byteLength(JSON.stringify(row)) + 1) < 0);
    return end === -1 ? found : found.slice(0, end);
  }

  private detail(id: number, shown: readonly ShownRoute[]): DashboardData['detail'] {
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

  /** Where a cursor was; null where it is of another process, too old to know what has changed since, or of a time to come. */
  private positionOf(cursor: string): { sample: number; at: number } | null {
    const [epoch, ...numbers] = cursor.split('.');
    const [sample = Number.NaN, at = Number.NaN] = numbers.map(Number);
    const isKnown = epoch === this.epoch && sample >= 1 && sample <= this.sample && this.sample - sample <= REMEMBERED;
    return isKnown && at <= this.snapshot!.at ? { sample, at } : null;
  }
}
