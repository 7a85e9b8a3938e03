import { getOrAdd } from '../core/get-or-add.js';
import { optional, value } from '../core/option.js';
import type { OncePerCause } from '../core/reporter.js';
import { Turns } from '../core/turns.js';
import type { Verdict } from '../core/verdict.js';
import type {
  CompareWhat,
  Counts,
  HistoryReader,
  MarkedSeries,
  PerfComparison,
  PodMinute,
  RangeFigures,
  TimeRange,
} from '../ports/history.js';
import { Collector, type Counters } from './collector.js';
import { compareRanges } from './compare/compare.js';
import { findRanges } from './compare/ranges.js';
import type { Fleet, FleetSource, HistorySource, HistoryStore, Identity, TakeBucket } from './history-store.js';
import { measureMinute, withoutDistributions } from './last-minute.js';
import { openWindow } from './rows/encoded-window.js';
import { MemoryTiers, type Bucket } from './rows/memory.js';
import type { HistoryRow } from './rows/row.js';
import { keptMs, MINUTE_MS, TIERS, type Tier } from './rows/tiers.js';
import { RouteSums, RouteWindow } from './rows/window.js';
import { computeRangeFigures, findTier, listOver, readSeries } from './series.js';
import { StoreKeeper } from './store-keeper.js';
import type { VerdictKeeper } from './verdicts/verdict-keeper.js';

export interface HistoryParts {
  readonly own: Identity;
  readonly store: HistoryStore | null;
  readonly keepDays: number;
  readonly maxBytes: number;
  readonly counters: () => Counters;
  readonly report: OncePerCause;
  readonly now: () => number;
}

/** The history of one process, or of all that share its store: turns counters into rows once a minute, keeps and reads them. */
export class History implements HistoryReader, FleetSource {
  private readonly memory: MemoryTiers;
  private readonly store: StoreKeeper | null;
  private readonly collector: Collector;
  readonly shared: boolean;
  /** When the counters were last collected, epoch milliseconds. */
  private collectedMs: number;
  private lastMinute: Bucket | undefined;
  /** Number of the last row for a shared store. */
  private part = 0;
  private busy: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly parts: HistoryParts,
    private readonly verdictKeeper: VerdictKeeper | null,
  ) {
    const { store, maxBytes, keepDays, report } = parts;
    this.shared = store?.shared === true;
    this.memory = new MemoryTiers(maxBytes, this.shared);
    const host = { keptMs: (tier: Tier) => keptMs(tier, keepDays), maxBytes };
    this.store = store === null ? null : new StoreKeeper(store, host, report);
    this.collector = new Collector(parts.counters);
    this.collectedMs = parts.now();
  }

  /** Starts the first minute, and discards counts from before it. */
  begin(): void {
    Array.from(this.collector.collect().routes);
    this.collectedMs = this.parts.now();
    void this.verdictKeeper?.recall(this, this.parts.now());
  }

  async fleet<T>(work: (fleet: Fleet) => Promise<T>): Promise<T | null> {
    return this.shared ? this.store!.fleet(work) : null;
  }

  async pods(): Promise<readonly PodMinute[]> {
    return (await this.fleet((fleet) => fleet.pods())) ?? [];
  }

  /** Called once a minute. Resolves when the store has taken the rows, or has failed. */
  async tick(): Promise<void> {
    const nowMs = this.parts.now();
    const { ended, writing } = await this.runInOrder(async () => {
      await this.addCounts(nowMs);
      const ended = await this.memory.finish(nowMs);
      // Before other work has a turn: a `close()` in between would lose these rows.
      return { ended, writing: this.write(ended) };
    });
    this.lastMinute = ended.findLast(({ tier }) => tier === '1m') ?? this.lastMinute;
    const published = writing.then((isWritten) => (this.shared && isWritten ? this.publish(ended, nowMs) : undefined));
    // A fleet is judged by the rows in its store; a single process is judged even while its disk hangs.
    if (this.shared) await published;
    await Promise.all([published, this.verdictKeeper?.judge(this, nowMs)]);
  }

  async close(deadlineMs: number): Promise<void> {
    const { store, memory } = this;
    const last = await this.runInOrder(async () => {
      if (store === null) return [];
      const nowMs = this.parts.now();
      await this.addCounts(nowMs);
      if (this.shared) return this.takeParts();
      const ended = await memory.finish(nowMs);
      return [...ended, ...memory.runningBuckets(TIERS.map(({ tier }) => tier))].map(this.makeRow);
    });
    await store?.close(last, deadlineMs);
  }

  async history(
    range: TimeRange & { stepMs?: number },
    { route = null, own = false }: { route?: string | null; own?: boolean } = {},
  ): Promise<MarkedSeries> {
    rangeOption.read(range, 'range');
    stepOption.read(range.stepMs, 'range.stepMs');
    await this.collect();
    const source: HistorySource = {
      read: (tier, within, begin) => this.read(tier, within, begin, !(own && this.shared)),
    };
    return readSeries(source, range, route, this.parts.now());
  }

  async compare(what: CompareWhat, { route = null }: { route?: string | null } = {}): Promise<PerfComparison> {
    whatOption.read(what, 'what');
    await this.collect();
    const nowMs = this.parts.now();
    const ranges = await findRanges(what, this, this.parts.own.release, nowMs);
    return compareRanges(this, ranges, route, nowMs);
  }

  verdicts(): readonly Verdict[] {
    return this.verdictKeeper?.verdicts ?? [];
  }

  async routes(range: TimeRange): Promise<ReadonlyMap<string, RangeFigures> | null> {
    const windows = await this.sumRoutes(range, RouteWindow);
    if (windows === null) return null;
    const sorted = [...windows].toSorted(([, a], [, b]) => b.sumMs - a.sumMs);
    return new Map(sorted.map(([name, window]) => [name, computeRangeFigures(window)]));
  }

  async countsSince(from: number): Promise<ReadonlyMap<string, Counts>> {
    const routes = await this.sumRoutes({ from, to: Infinity }, RouteSums, false);
    const pick = (sums: RouteSums): Counts => ({ count: sums.count, errors: sums.errors, over: listOver(sums) });
    return new Map([...routes!].map(([name, sums]) => [name, pick(sums)]));
  }

  /** Null when a shared store could not be read. */
  private async sumRoutes<T extends RouteSums>(
    range: TimeRange,
    Sums: new () => T,
    withStore = true,
  ): Promise<ReadonlyMap<string, T> | null> {
    await this.collect();
    const routes = new Map<string, T>();
    const begin = (): TakeBucket => {
      routes.clear();
      return ({ window }) => {
        for (const name of window.routeNames)
          window.addTo(
            getOrAdd(routes, name, () => new Sums()),
            name,
          );
      };
    };
    const isRead = await this.read(findTier(range.from, this.parts.now()), range, begin, withStore);
    return this.shared && !isRead ? null : routes;
  }

  async read(tier: Tier, range: TimeRange, begin: () => TakeBucket, withStore = true): Promise<boolean> {
    const { memory, store, shared } = this;
    const { own } = this.parts;
    const turns = new Turns();
    const handOn = async (take: TakeBucket, { data, ...row }: Omit<HistoryRow, 'tier'>): Promise<void> => {
      const window = openWindow(data);
      if (window !== null) take({ ...row, window });
      await turns.rest();
    };
    const handOnMemory = async (take: TakeBucket): Promise<ReadonlySet<number>> => {
      const remembered = await this.runInOrder(async () => memory.buckets(tier, range));
      for (const bucket of remembered) await handOn(take, { ...own, ...bucket });
      return new Set(remembered.map(({ at }) => at));
    };
    if (store !== null && withStore) {
      const take = begin();
      // A shared store includes the counts of this process: memory would add them twice.
      const known = shared ? new Set<number>() : await handOnMemory(take);
      const takeRow = async (row: HistoryRow): Promise<void> => {
        if (row.instance !== own.instance || !known.has(row.at)) await handOn(take, row);
      };
      if (await store.read(tier, range, takeRow, shared ? () => this.flush(store) : undefined)) return true;
    }
    await handOnMemory(begin());
    return store === null || !withStore;
  }

  /** Writes rows that the store lacks; true when it has them all. */
  private write(ended: readonly Bucket[]): Promise<boolean> {
    const { memory, store } = this;
    if (store === null) return Promise.resolve(true);
    if (this.shared) return store.write(this.takeParts(), []);
    return store.write(ended.map(this.makeRow), memory.runningBuckets(['5m', '1h']).map(this.makeRow));
  }

  /** Writes all counts until now to the shared store; true when it has them. */
  private async flush(store: StoreKeeper): Promise<boolean> {
    // A failing store gets no new rows from its readers: each would add one to those that wait, which are bounded.
    if (store.isFailing && !(await store.write([], []))) return false;
    const { writing } = await this.runInOrder(async () => {
      await this.addCounts(this.parts.now());
      return { writing: this.write([]) };
    });
    return writing;
  }

  /** Publishes the last minute, for the pages of other pods, and ended windows, for the leader's verdicts. */
  private async publish(ended: readonly Bucket[], nowMs: number): Promise<void> {
    const minute = measureMinute(this.parts.own, this.lastMinute, nowMs);
    const windows = ended
      .filter(({ tier }) => tier === '5m')
      .map((bucket) => withoutDistributions(this.makeRow(bucket)));
    await this.fleet((fleet) => fleet.publish(minute, windows));
  }

  /** One piece of work after the other: each takes several turns of the event loop, and must not be seen half done. */
  private runInOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.busy.then(work);
    this.busy = done.catch(() => {});
    return done;
  }

  private collect(): Promise<void> {
    return this.runInOrder(() => this.addCounts(this.parts.now()));
  }

  /** Adds counts since the last call to memory. Called only within {@link runInOrder}. */
  private async addCounts(nowMs: number): Promise<void> {
    // Ticks are at most a minute apart: a longer step of the wall clock means that the clock was set.
    const passedMs = Math.min(Math.max(0, nowMs - this.collectedMs), MINUTE_MS);
    this.collectedMs = nowMs;
    // Counts belong to the time between two ticks: the middle of it chooses their bucket.
    await this.memory.add(nowMs - passedMs / 2, this.collector.collect());
  }

  /** Counts since the last call as numbered rows: a shared store adds them up, each number once. */
  private takeParts(): HistoryRow[] {
    return this.memory.takeFresh().map((bucket) => ({ ...this.makeRow(bucket), part: (this.part += 1) }));
  }

  private readonly makeRow = ({ tier, at, data }: Bucket): HistoryRow => ({ tier, at, data, ...this.parts.own });
}

/** The greatest time of a `Date`, epoch milliseconds. */
const MAX_TIME = 8.64e15;
const isTime = (given: unknown): given is number => typeof given === 'number' && Math.abs(given) <= MAX_TIME;
const isRange = (given: unknown): boolean => {
  const { from, to } = Object(given) as Partial<TimeRange>;
  return isTime(from) && isTime(to) && from < to;
};

const rangeOption = value<TimeRange>('an object with `from` and `to`, epoch milliseconds, `from` below `to`', isRange);
const stepOption = optional(
  value<number>(`a number of milliseconds above 0 and at most ${MAX_TIME}`, (given) => isTime(given) && given > 0),
);
const whatOption = value<CompareWhat>(
  "'day', 'week', 'release', or an object with the ranges `before` and `after`, each with `from` below `to`",
  (given) => {
    const { before, after } = Object(given) as { before?: unknown; after?: unknown };
    return ['day', 'week', 'release'].includes(given as string) || (isRange(before) && isRange(after));
  },
);
