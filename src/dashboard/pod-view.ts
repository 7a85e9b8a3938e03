import type { PerfSnapshot, UserUse } from '../core/snapshot.js';
import { inTurns, Turns, type Steps } from '../core/turns.js';
import type { ExperimentAnswer, ExperimentAnswers } from '../ports/experiment-answers.js';
import type { HistoryReader } from '../ports/history.js';
import type { LatencyFigures } from '../ports/latency-figures.js';
import type { Overview } from '../ports/overview.js';
import type { Rejected, RejectedList } from '../ports/rejected.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import type { UserList } from '../ports/users.js';
import type { PerfApplication } from '../request/application.js';
import { findProblems, LOST, type Situation } from './problems.js';
import { countAllRoutes, countRoutes, Gains, type Lately } from './lately.js';
import type { RecentRecords } from './recent-records.js';
import { Refreshed } from './refreshed.js';
import { cut, listRoutes, makePodRow, MAX_ROUTES, nameRoute, sumTotals, type ListedRoute } from './route-rows.js';
import { sumRoutes, Traffic } from './traffic.js';
import type { DashboardData, Past, RouteDetail, RouteRow, Sections } from './view.js';

/** The page's work gives the event loop a turn after this time, milliseconds; a single step may take longer. */
const TURN_MS = 1;
/** Several pages share a sample, which is kept longer the more routes it has, milliseconds. */
const MIN_AGE_MS = 1_500;
const MAX_AGE_MS = 10_000;
const AGE_MS_A_ROUTE = 1;
const MAX_ROWS = 30;
const MAX_WORK = 50;
const MAX_CALLERS = 5;
const MAX_DETAILS = 10;
/** Bounds of a distribution, half an octave apart: an eighth of a millisecond to two minutes. */
const BOUNDS_MS = Array.from({ length: 41 }, (_, step) => 2 ** (step / 2 - 3));

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

/** Figures of one pod or of all, shared by all viewers. */
export interface Sample {
  readonly shown: Pick<
    DashboardData,
    'at' | 'pods' | 'podCount' | 'overMs' | 'totals' | 'traffic' | 'container' | 'sections'
  >;
  /** Routes, the one that took most time first. */
  readonly rows: readonly RouteRow[];
  /** A route in depth, by its row's id or its name. */
  readonly describe: (route: string) => Promise<RouteDetail | null>;
}

/** Experiments, rejects and the last hours, which take too long for a sample. */
type SlowSections = readonly [ExperimentAnswer[], Rejected[], Past];

/** Samples the process when a viewer polls, and only then. */
export class PodView {
  private readonly calls = new Gains();
  private readonly deferred = new Gains();
  private readonly traffic = new Traffic();
  private readonly experiments: Refreshed<ExperimentAnswer[]>;
  private readonly rejected: Refreshed<Rejected[]>;
  private readonly lately: Refreshed<Lately> | null;
  /** Start of the application, not of the process; monotonic milliseconds. */
  private readonly startedMs: number;
  private last: Sample | null = null;
  private taking: Promise<Sample> | null = null;
  /** Until then {@link last} is shared, monotonic milliseconds. */
  private oldAtMs = -Infinity;

  constructor(
    private readonly host: PerfApplication,
    private readonly sources: DashboardSources,
    private readonly records: RecentRecords,
    private readonly nameUser: (userId: string) => string,
    private readonly readPast: (route: string | null) => Promise<Past>,
  ) {
    this.startedMs = host.nowMs();
    this.experiments = new Refreshed(host, 'experiments', [], () => readExperiments(sources.experiments));
    this.rejected = new Refreshed(host, 'rejects', [], () => readRejected(sources.rejected));
    const { history } = sources;
    const count = (): Promise<Lately> => countRoutes(history!, host.nowMs() - this.startedMs);
    const nothing: Lately = { spanMs: 0, counts: new Map() };
    this.lately = history === null ? null : new Refreshed(host, 'the last minutes', nothing, count);
  }

  /** Returns the last sample while it is young, else a new one. Made in turns, so that no request waits for all of it. */
  async sample(): Promise<Sample> {
    if (this.last !== null && this.host.nowMs() < this.oldAtMs) return this.last;
    return (this.taking ??= this.take().finally(() => (this.taking = null)));
  }

  private async take(): Promise<Sample> {
    const [experiments, rejected, past, lately] = await Promise.all([
      this.experiments.read(),
      this.rejected.read(),
      this.readPast(null),
      this.lately?.read(),
    ]);
    const takenAtMs = this.host.nowMs();
    const turns = new Turns(TURN_MS);
    const snapshot = await inTurns(this.sources.overview.snapshotSteps(), turns);
    const routes = lately ?? countAllRoutes(snapshot.routes, takenAtMs - this.startedMs);
    const sample = this.makeSample(snapshot, takenAtMs, routes, [experiments, rejected, past]);
    this.last = await inTurns(sample, turns);
    this.oldAtMs = takenAtMs + Math.min(MAX_AGE_MS, Math.max(MIN_AGE_MS, AGE_MS_A_ROUTE * snapshot.routes.length));
    return this.last;
  }

  private *makeSample(snapshot: PerfSnapshot, takenAtMs: number, routes: Lately, slow: SlowSections): Steps<Sample> {
    const { traffic, records } = this;
    const { latency, times } = this.sources;
    const sums = latency === null ? null : yield* sumRoutes(latency.totals(), times);
    traffic.add(snapshot, takenAtMs, sums);
    yield;
    const overMs = snapshot.routes[0]?.over.map(({ ms }) => ms) ?? [];
    const all = listRoutes(snapshot.routes);
    const makeOne = (route: ListedRoute): RouteRow =>
      makePodRow(route, overMs, sums?.ownMs.get(nameRoute(route.snapshot)));
    const rows: RouteRow[] = [];
    for (const route of all.slice(0, MAX_ROUTES)) {
      yield;
      rows.push(makeOne(route));
    }
    yield;
    const upstreams = snapshot.upstream.map(({ target, calls, errors }) => [target, { count: calls, errors }] as const);
    const lost = (snapshot.defer?.failed ?? 0) + (snapshot.defer?.dropped ?? 0);
    const lately = {
      routes,
      calls: this.calls.add(takenAtMs, new Map(upstreams)),
      deferred: this.deferred.add(takenAtMs, new Map([[LOST, { count: lost, errors: lost }]])),
    };
    const sections = this.describeSections(snapshot, lately, slow);
    const totals = latency === null ? null : sumTotals(snapshot.routes);
    return {
      shown: {
        at: snapshot.at,
        pods: null,
        podCount: 1,
        overMs,
        totals,
        traffic: traffic.points,
        container: records.container,
        sections,
      },
      rows,
      describe: async (route) => {
        const found = all.find(({ id }) => id === route) ?? all.find(({ name }) => name === route);
        return found === undefined ? null : this.describeRoute(found, makeOne(found));
      },
    };
  }

  private describeSections(
    snapshot: PerfSnapshot,
    lately: Pick<Situation, 'routes' | 'calls' | 'deferred'>,
    [experiments, rejected, past]: SlowSections,
  ): Sections {
    const { records, nameUser, sources } = this;
    const { eventLoop, resources, defer, upstream, compression, users, work } = snapshot;
    const blocks = records.blocks();
    const verdicts = sources.history?.verdicts() ?? [];
    const reasons = sources.overview.findReasons(snapshot);
    return {
      now: findProblems({ snapshot, reasons, verdicts, nameUser, blocks, rejected, ...lately }),
      eventLoop,
      blocks: blocks.map(({ row }) => row),
      resources,
      defer,
      failedWork: records.failedWork,
      rejected,
      upstream: largest(upstream, Infinity, ({ calls, durationMs }) => calls * durationMs.mean).map((target) => ({
        ...target,
        routes: largest(target.routes, MAX_CALLERS, ({ wallMs }) => wallMs),
      })),
      users: this.renamed(users),
      work: largest(work, MAX_WORK, ({ count, durationMs }) => count * durationMs.mean),
      experiments,
      past,
      compression,
    };
  }

  private async describeRoute({ snapshot }: ListedRoute, row: RouteRow): Promise<RouteDetail> {
    const users = this.sources.users?.list('totalMs', nameRoute(snapshot)) ?? [];
    return {
      row,
      statuses: snapshot.statuses,
      distribution: this.distribute(snapshot),
      users: this.renamed(users.slice(0, MAX_DETAILS)),
      upstream: snapshot.upstream.slice(0, 2 * MAX_DETAILS),
      past: await this.readPast(nameRoute(snapshot)),
    };
  }

  /** Counts a route's requests by how long they took, from the first bucket that is not empty to the last. */
  private distribute({ method, route, handler }: PerfSnapshot['routes'][number]): RouteDetail['distribution'] {
    const atMost = BOUNDS_MS.map(() => 0);
    let all = 0;
    for (const histogram of this.sources.latency?.histograms() ?? []) {
      if (histogram.route !== route || histogram.handler !== handler) continue;
      // The requests without a route share one row, whatever their method.
      if (route !== '' && histogram.method !== method) continue;
      all += histogram.count;
      histogram.countsAtMost(BOUNDS_MS).forEach((seen, index) => (atMost[index]! += seen));
    }
    const counts = [...atMost, all].map((seen, index) => seen - (atMost[index - 1] ?? 0));
    const isFilled = (count: number): boolean => count > 0;
    const [first, last] = [counts.findIndex(isFilled), counts.findLastIndex(isFilled)];
    const buckets = counts.map((count, index) => ({ ms: BOUNDS_MS[index] ?? null, count }));
    return first === -1 ? [] : buckets.slice(first, last + 1);
  }

  /** Users as the page shows them: `nameUser` may hide who they are. */
  private renamed(users: readonly UserUse[]): UserUse[] {
    return users.map((user) => ({ ...user, unit: this.nameUser(user.unit) }));
  }
}

const largest = <T>(items: readonly T[], max: number, measure: (item: T) => number): T[] =>
  items.toSorted((a, b) => measure(b) - measure(a)).slice(0, max);

/** Work that a store, which may be a disk, has refused for good. */
async function readRejected(source: RejectedList | null): Promise<Rejected[]> {
  const rejected = (await source?.rejected()) ?? [];
  return rejected.slice(-MAX_ROWS).map((one) => ({ ...one, error: cut(one.error, 300) }));
}

/** Answers of experiments. One gate in each turn of the event loop: each takes milliseconds. */
async function readExperiments(source: ExperimentAnswers | null): Promise<ExperimentAnswer[]> {
  const answers: ExperimentAnswer[] = [];
  for (const gate of source?.gates().slice(0, MAX_ROWS) ?? []) {
    const { text, caveats } = source!.answer(gate);
    answers.push({ gate, text, caveats });
    await new Promise((resolve) => setImmediate(resolve));
  }
  return answers;
}
