import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { epochMsOf } from '../core/clock.js';
import type { Counts } from '../core/history.js';
import { LATENCY_FIGURES } from '../core/latency-figures.js';
import { OVERVIEW, type Overview } from '../core/overview.js';
import { displayJson } from '../core/printable.js';
import type { Rejected } from '../core/rejected.js';
import type { RouteHistogram } from '../core/sink.js';
import type { PerfSnapshot, UserUse } from '../core/snapshot.js';
import { Turns, type Steps } from '../core/turns.js';
import { REDACT_USER, userRedactor, USERS } from '../core/users.js';
import type { FeatureHost } from '../http/feature.js';
import { earlierCounts, historyNameOf, type EarlierCounts } from './earlier-counts.js';
import { PastFigures } from './past-figures.js';
import { problemsOf } from './problems.js';
import { RecentCounts } from './recent-counts.js';
import type { RecentRecords } from './recent-records.js';
import { detailOf } from './route-detail.js';
import { Refreshed } from './refreshed.js';
import { foundRoutes, otherRoutes, rounded, shownRoute, type ShownRoute } from './route-rows.js';
import { experimentsOf, rejectedOf } from './slow-figures.js';
import { Traffic } from './traffic.js';
import { REMEMBERED, Versions } from './versions.js';
import type { DashboardData, ExperimentRow, OtherRoutes, Past, ProcessInfo, Sections } from './view.js';

/** So long the page's work keeps the event loop at a time, milliseconds; longer where one step is longer. */
const TURN_MS = 1;
/** Several pages share what was made for one of them. */
const MAX_AGE_MS = 1_500;
/** What is dear to make, as with ten thousand routes, is kept longer: looking takes about a fortieth of the event loop's time. */
const AGE_OF_COST = 40;
const LONGEST_AGE_MS = 10_000;
/** Bytes of sections and routes; with what is found and what stands around them, an answer has at most 256 KB. */
const MAX_BYTES = 190_000;
const MAX_FOUND_BYTES = 40_000;
const MAX_UPSTREAMS = 60;
const MAX_USERS = 50;

/** What a page asks for. */
export interface Question {
  /** The cursor of its last answer; `''` at first. */
  readonly since: string;
  readonly filter: string;
  /** The route that is open. */
  readonly routeId: number | null;
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
  private readonly process: Omit<ProcessInfo, 'startedAt'>;
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
    private readonly host: FeatureHost,
    private readonly records: RecentRecords,
    private readonly assets: string,
    private readonly redactUsers: boolean,
  ) {
    const { requests, report, nowMs } = host;
    this.startedMs = nowMs();
    this.experiments = new Refreshed([], () => experimentsOf(requests), 'experiments', report, nowMs);
    this.rejected = new Refreshed([], () => rejectedOf(requests), 'rejects', report, nowMs);
    this.past = new PastFigures(requests, report, nowMs);
    this.process = {
      pod: hostname(),
      pid: process.pid,
      release: host.release,
      node: process.version,
    };
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
      process: { ...this.process, startedAt: Math.round(epochMsOf(0)) },
      overMs: snapshot.routes[0]?.over.map(({ ms }) => ms) ?? [],
      gone,
      other: this.other,
      found: found?.map(({ row }) => row) ?? null,
      totals: LATENCY_FIGURES.get(this.host.requests) === null ? null : totalsOf(snapshot),
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

  /** All histograms of the application, for the distribution of one route too. */
  private histograms(): Iterable<RouteHistogram> {
    return LATENCY_FIGURES.get(this.host.requests)?.histograms() ?? [];
  }

  /**
   * One sample for all that ask meanwhile, made in turns: the application's requests wait for none of it as a whole.
   * Resolves to what it has cost the event loop, milliseconds: 0 where the last one is young enough.
   */
  private sampled(): Promise<number> {
    const now = this.host.nowMs();
    if (this.snapshot !== null && now - this.takenAtMs < this.maxAgeMs) return Promise.resolve(0);
    this.sampling ??= this.takeSample().finally(() => (this.sampling = null));
    return this.sampling;
  }

  private async takeSample(): Promise<number> {
    const { nowMs, requests } = this.host;
    const takenAtMs = nowMs();
    const overview = OVERVIEW.get(requests)!;
    const work = new MeasuredWork(nowMs);
    const snapshot = await work.inTurns(overview.snapshot());
    const isFirst = this.traffic.isAfterGap(takenAtMs);
    const earlier = isFirst ? await earlierCounts(snapshot, requests, takenAtMs - this.startedMs) : null;
    await work.inTurns(this.show(snapshot, takenAtMs, overview, earlier));
    this.maxAgeMs = Math.min(LONGEST_AGE_MS, Math.max(MAX_AGE_MS, work.ms * AGE_OF_COST));
    this.takenAtMs = takenAtMs;
    this.snapshot = snapshot;
    return work.ms;
  }

  /** `earlier`: of the time before this sample, where nobody has looked. */
  private *show(
    snapshot: PerfSnapshot,
    takenAtMs: number,
    overview: Overview,
    earlier: EarlierCounts | null,
  ): Steps<void> {
    const { at, eventLoop } = snapshot;
    this.sample += 1;
    this.recent.next(takenAtMs, earlier?.spanMs ?? null);
    const totals = LATENCY_FIGURES.get(this.host.requests)?.totals() ?? null;
    yield* this.traffic.add(at, takenAtMs, totals, eventLoop, earlier);
    this.countRecent(snapshot);
    const shown: ShownRoute[] = [];
    for (const found of foundRoutes(snapshot.routes, '')) {
      yield;
      const before = earlier?.routes.get(found.snapshot);
      this.recent.count(found.key, troublesOf(found.snapshot), before && troublesOf(before));
      shown.push(shownRoute(found, this.ids, this.recent));
    }
    yield;
    const bytes = yield* this.putSections(snapshot, overview, shown);
    this.shown = yield* this.putRows(shown, MAX_BYTES - bytes);
    this.other = otherRoutes(snapshot.routes, this.shown);
  }

  private countRecent({ upstream, defer }: PerfSnapshot): void {
    for (const { target, calls, errors } of upstream) this.recent.count(`upstream ${target}`, [calls, errors]);
    if (defer !== null) this.recent.count('defer', [defer.failed, defer.dropped]);
  }

  /** Returns how many bytes they take. */
  private *putSections(snapshot: PerfSnapshot, overview: Overview, routes: readonly ShownRoute[]): Steps<number> {
    const { records, recent } = this;
    const blocks = records.blocks();
    const rejected = this.rejected.now();
    const reasons = overview.reasons(snapshot);
    yield;
    const verdicts = overview.past()?.verdicts() ?? [];
    yield;
    const now = problemsOf({ snapshot, reasons, verdicts, nameOf: this.nameOf, routes, blocks, recent, rejected });
    yield;
    const sections: Sections = {
      now,
      eventLoop: snapshot.eventLoop,
      blocks: blocks.map(({ row }) => row),
      resources: snapshot.resources,
      defer: snapshot.defer,
      failedWork: records.failedWork,
      rejected,
      upstream: largest(snapshot.upstream, MAX_UPSTREAMS, ({ calls, durationMs }) => calls * durationMs.mean).map(
        ({ routes: callers, ...upstream }) => ({
          ...upstream,
          routes: largest(callers, 5, ({ wallMs }) => wallMs),
        }),
      ),
      users: this.redacted(snapshot.users),
      compression:
        snapshot.compression === null
          ? null
          : {
              ...snapshot.compression,
              routes: largest(snapshot.compression.routes, 20, ({ bytesIn, bytesOut }) => bytesIn - bytesOut),
            },
      experiments: this.experiments.now(),
      past: this.past.of(null).now(),
    };
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
    const users = USERS.get(this.host.requests)?.('totalMs', route.row.name) ?? [];
    const blocks = this.records.blocks().filter(({ row }) => row.route === route.row.name);
    return detailOf(route, this.histograms(), {
      users: this.redacted(users.slice(0, 10)),
      blocks: blocks.map(({ row }) => row.id),
      past: this.past.of(historyNameOf(route.snapshot)).now(),
    });
  }

  private redacted(users: readonly UserUse[]): UserUse[] {
    return users.slice(0, MAX_USERS).map((user) => ({ ...user, unit: this.nameOf(user.unit) }));
  }

  /** With `users.redact` an id is a hash already, the one that the log tells of. */
  private readonly nameOf = (unit: string): string =>
    this.redactUsers && REDACT_USER.get(this.host.requests) === null ? this.redact(unit) : unit;

  /** Where a cursor was; null where it is of another process, too old to know what has changed since, or of a time to come. */
  private positionOf(cursor: string): { sample: number; at: number } | null {
    const [epoch, ...numbers] = cursor.split('.');
    const [sample = Number.NaN, at = Number.NaN] = numbers.map(Number);
    const isKnown = epoch === this.epoch && sample >= 1 && sample <= this.sample && this.sample - sample <= REMEMBERED;
    return isKnown && at <= this.snapshot!.at ? { sample, at } : null;
  }
}

/** Work that gives others their turns, and how long it kept the event loop, milliseconds. */
class MeasuredWork {
  ms = 0;
  private readonly turns = new Turns(TURN_MS);

  constructor(private readonly nowMs: () => number) {}

  async inTurns<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      const startedMs = this.nowMs();
      const step = steps.next();
      this.ms += this.nowMs() - startedMs;
      if (step.done === true) return step.value;
      await this.turns.rest();
    }
  }
}

/** Requests, and those of them that failed and that were slow. */
const troublesOf = ({ count, errors, over }: Counts): [number, number, number] => [count, errors, over[0]?.count ?? 0];

function totalsOf({ routes }: PerfSnapshot): NonNullable<DashboardData['totals']> {
  const totals = { count: 0, errors: 0, inFlight: 0, routes: routes.length };
  for (const { method, count, errors, inFlight } of routes) {
    // The rows of a resolver's HTTP request count it already.
    if (method === 'GRAPHQL') continue;
    totals.count += count;
    totals.errors += errors;
    totals.inFlight += inFlight;
  }
  return totals;
}

const largest = <T>(items: readonly T[], max: number, sizeOf: (item: T) => number): T[] =>
  [...items].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, max);
