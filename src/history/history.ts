import { optionError } from '../core/option.js';
import { entryOf } from '../core/entry-of.js';
import type {
  CompareWhat,
  Counts,
  HistoryReader,
  HistorySeries,
  PerfComparison,
  PodMinute,
  RangeFigures,
  RouteCounts,
  TimeRange,
} from '../ports/history.js';
import type { OncePerCause } from '../core/reporter.js';
import type { Verdict } from '../core/verdict.js';
import { Collector, type Counters } from './collector.js';
import { compareRanges } from './compare/compare.js';
import { findRanges } from './compare/ranges.js';
import type { Fleet } from './fleet.js';
import type { HistoryStore } from './history-store.js';
import type { HistorySource, Identity, ReadBucket } from './reader.js';
import { LastMinute, withoutDistributions } from './last-minute.js';
import { MemoryTiers, type Bucket } from './rows/memory.js';
import type { HistoryRow } from './rows/row.js';
import { EncodedWindow } from './rows/window-codec.js';
import { RouteSums, RouteWindow } from './rows/window.js';
import { keptMs, MINUTE_MS, TIERS, type Tier } from './rows/tiers.js';
import { listOver, computeRangeFigures, readSeries, tierFor } from './series.js';
import { StoreKeeper } from './store-keeper.js';
import { inTurns, Turns, type Steps } from '../core/turns.js';
import type { VerdictKeeper } from './verdicts/verdict-keeper.js';

/** A history's parts. */
export interface HistoryParts {
  readonly own: Identity;
  readonly store: HistoryStore | null;
  readonly keepDays: number;
  readonly maxBytes: number;
  readonly counters: () => Counters;
  readonly report: OncePerCause;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** The history of one process, or of all that share its store: collects rows from the counters, keeps them in memory and in a store, reads them. */
export class History implements HistoryReader, HistorySource {
  private readonly memory: MemoryTiers;
  private readonly store: StoreKeeper | null;
  private readonly collector: Collector;
  private readonly lastMinute: LastMinute;
  readonly shared: boolean;
  private collectedMs: number;
  private part = 0;
  private busy: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly parts: HistoryParts,
    private readonly judge: VerdictKeeper | null,
  ) {
    const { store, maxBytes, keepDays, report } = parts;
    this.shared = store?.shared === true;
    this.memory = new MemoryTiers(maxBytes, this.shared);
    this.lastMinute = new LastMinute(parts.own);
    const host = { keptMs: (tier: Tier) => keptMs(tier, keepDays), maxBytes };
    this.store = store === null ? null : new StoreKeeper(store, host, report);
    this.collector = new Collector(parts.counters);
    this.collectedMs = parts.now();
  }

  /** Begins anew: earlier counts belong to nobody's minute. */
  begin(): void {
    Array.from(this.collector.collect().routes);
    this.collectedMs = this.parts.now();
    void this.judge?.recall(this, this.parts.now());
  }

  /** Runs `ask` on the fleet of a shared store; null without one, and while it is away. */
  async fleet<T>(ask: (fleet: Fleet) => Promise<T>): Promise<T | null> {
    return this.shared ? this.store!.fleet(ask) : null;
  }

  async pods(): Promise<readonly PodMinute[]> {
    return (await this.fleet((fleet) => fleet.pods())) ?? [];
  }

  /** Once a minute. Resolves when the store has taken it, or has failed. */
  async tick(): Promise<void> {
    const nowMs = this.parts.now();
    if (this.shared) return this.tickOfFleet(nowMs);
    const { writing } = await this.alone(async () => {
      const ended = await inTurns(this.ended(nowMs));
      if (this.store === null) return {};
      const running = await inTurns(this.memory.runningBuckets(['5m', '1h']));
      // Handed on before anybody else has a turn: who closes meanwhile loses no row.
      return { writing: this.store.write(ended.map(this.makeRow), running.map(this.makeRow)) };
    });
    await Promise.all([writing, this.judge?.judge(this, nowMs)]);
  }

  private async tickOfFleet(nowMs: number): Promise<void> {
    const ended = await this.alone(() => inTurns(this.ended(nowMs)));
    const windows = ended.filter(({ tier }) => tier === '5m').map(this.makeRow);
    if (await this.flush(nowMs)) {
      const minute = this.lastMinute.measure(ended, nowMs);
      await this.fleet((fleet) => fleet.publish(minute, windows.map(withoutDistributions)));
    }
    await this.judge?.judge(this, nowMs);
    await this.fleet(async (fleet) => (await fleet.lead()) && fleet.tidy(nowMs));
  }

  /** Writes what was counted until now; true when the shared store has all of it. */
  private async flush(nowMs: number): Promise<boolean> {
    const writing = await this.alone(async () => {
      await inTurns(this.take(nowMs));
      const parts = await inTurns(this.memory.takeFresh());
      // Handed on before anybody else has a turn: who closes meanwhile loses no part.
      return { done: this.store!.flush(parts.map((bucket) => ({ ...this.makeRow(bucket), part: (this.part += 1) }))) };
    });
    return writing.done;
  }

  /** Writes what runs. */
  async close(deadlineMs: number): Promise<void> {
    const { store, memory } = this;
    if (store === null) return void (await this.busy);
    const last = await this.alone(async () => {
      const ended = await inTurns(this.ended(this.parts.now()));
      if (this.shared) return inTurns(memory.takeFresh());
      return [...ended, ...(await inTurns(memory.runningBuckets(TIERS.map(({ tier }) => tier))))];
    });
    const rows = last.map(this.makeRow);
    await store.close(this.shared ? rows.map((row) => ({ ...row, part: (this.part += 1) })) : rows, deadlineMs);
  }

  async history(
    range: TimeRange & { stepMs?: number },
    { route = null }: { route?: string | null } = {},
  ): Promise<HistorySeries> {
    checkRange(range, 'range');
    const { stepMs } = range;
    if (stepMs !== undefined && !(isTime(stepMs) && stepMs > 0))
      throw optionError('range.stepMs', `a number of milliseconds above 0 and at most ${MAX_TIME}`, stepMs);
    await this.collect();
    return readSeries(this, range, route, this.parts.now());
  }

  async compare(what: CompareWhat, { route = null }: { route?: string | null } = {}): Promise<PerfComparison> {
    checkWhat(what);
    await this.collect();
    const nowMs = this.parts.now();
    const ranges = await findRanges(what, this, this.parts.own.release, nowMs);
    return compareRanges(this, ranges, route, nowMs);
  }

  verdicts(): readonly Verdict[] {
    return this.judge?.verdicts ?? [];
  }

  async releases(range: TimeRange): Promise<{ at: number; release: string }[]> {
    const first = new Map<string, number>();
    await this.read(tierFor(range.from, this.parts.now()), range, ({ at, release }) => {
      if (release !== '') first.set(release, Math.min(at, first.get(release) ?? Infinity));
    });
    return [...first].map(([release, at]) => ({ at, release })).toSorted((a, b) => a.at - b.at);
  }

  async routes(range: TimeRange): Promise<ReadonlyMap<string, RangeFigures>> {
    await this.collect();
    const windows = new Map<string, RouteWindow>();
    await this.read(tierFor(range.from, this.parts.now()), range, ({ window }) => {
      for (const name of window.routeNames) entryOf(windows, name, () => new RouteWindow()).merge(window.window(name)!);
    });
    const sorted = [...windows].toSorted(([, a], [, b]) => b.sumMs - a.sumMs);
    return new Map(sorted.map(([name, window]) => [name, computeRangeFigures(window)]));
  }

  async countsSince(from: number, routes: readonly string[]): Promise<RouteCounts> {
    await this.collect();
    const [whole, named] = [new RouteSums(), new Map<string, RouteSums>()];
    const add = ({ window }: ReadBucket): void => {
      whole.add(window.sums(null)!);
      for (const name of routes) {
        const found = window.sums(name);
        if (found !== null) entryOf(named, name, () => new RouteSums()).add(found);
      }
    };
    await this.read('1m', { from, to: Infinity }, add, false);
    return { whole: pickCounts(whole), routes: new Map([...named].map(([name, one]) => [name, pickCounts(one)])) };
  }

  async read(tier: Tier, range: TimeRange, take: (bucket: ReadBucket) => void, withStore = true): Promise<boolean> {
    const { memory, store } = this;
    const { own } = this.parts;
    const turns = new Turns();
    const takeRow = async ({ data, ...row }: HistoryRow): Promise<void> => {
      try {
        take({ ...row, window: new EncodedWindow(data) });
      } catch (error) {
        // A checksum does not prove the writer: a row that cannot be decoded is left out.
        if (!(error instanceof RangeError)) throw error;
      }
      await turns.rest();
    };
    const isOfFleet = this.shared && withStore;
    if (isOfFleet && (await this.flush(this.parts.now()))) {
      const rows: HistoryRow[] = [];
      if (await store!.read(tier, range, (row) => void rows.push(row))) {
        for (const row of rows) await takeRow(row);
        return true;
      }
    }
    for (const { at, window } of await this.alone(() => inTurns(memory.buckets(tier, range)))) {
      take({ ...own, at, window });
      await turns.rest();
    }
    if (store === null || !withStore) return true;
    if (isOfFleet) return false;
    return store.read(tier, range, async (row) => {
      if (row.instance !== own.instance || !memory.has(tier, row.at)) await takeRow(row);
    });
  }

  /** Long work is spread over turns of the event loop: others see its result as a whole, after it. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.busy.then(work);
    this.busy = done.catch(() => {});
    return done;
  }

  /** Takes what was counted until now into memory. */
  private collect(): Promise<void> {
    return this.alone(() => inTurns(this.take(this.parts.now())));
  }

  private *ended(nowMs: number): Steps<Bucket[]> {
    yield* this.take(nowMs);
    return yield* this.memory.finish(nowMs);
  }

  private *take(nowMs: number): Steps<void> {
    // Ticks are a minute apart at most: a longer step of the wall clock means that it was set.
    const passedMs = Math.min(Math.max(0, nowMs - this.collectedMs), MINUTE_MS);
    this.collectedMs = nowMs;
    // Counted between two ticks: it belongs to the bucket in the middle of them.
    yield* this.memory.add(nowMs - passedMs / 2, this.collector.collect());
  }

  private readonly makeRow = ({ tier, at, data }: Bucket): HistoryRow => ({ tier, at, data, ...this.parts.own });
}

const pickCounts = (sums: RouteSums): Counts => ({ count: sums.count, errors: sums.errors, over: listOver(sums) });

const RANGE = 'an object with `from` and `to`, epoch milliseconds, `from` below `to`';
const WHAT = "'day', 'week', 'release', or an object with the ranges `before` and `after`";

/** The greatest value of a Date. */
const MAX_TIME = 8.64e15;
const isTime = (value: unknown): value is number => typeof value === 'number' && Math.abs(value) <= MAX_TIME;

function checkRange(range: unknown, path: string): void {
  const { from, to } = (typeof range === 'object' && range !== null ? range : {}) as Partial<TimeRange>;
  if (!isTime(from) || !isTime(to) || from >= to) throw optionError(path, RANGE, range);
}

function checkWhat(what: unknown): void {
  if (what === 'day' || what === 'week' || what === 'release') return;
  if (typeof what !== 'object' || what === null) throw optionError('what', WHAT, what);
  checkRange((what as { before?: unknown }).before, 'what.before');
  checkRange((what as { after?: unknown }).after, 'what.after');
}
