import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import type { CachedMethodStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import type { Bound } from './bound.js';
import type { MakeKey } from './cache-key.js';
import type { CachedCalls, Source } from './cached-calls.js';
import type { ResolvedCached } from './cached.options.js';
import { aheadMs, Entry, computeTimes } from './entry.js';
import { Flight, outsideRequests, retryAfterMs } from './flight.js';
import type { Level2Answer } from './level2.js';
import { MethodCounters } from './method-counters.js';
import type { MethodLevel2 } from './method-level2.js';
import { clonePlain } from './value.js';
import { Values } from './values.js';

/** Collaborators that the cached methods of an application share. */
export interface CacheParts {
  readonly nowMs: () => number;
  readonly report: OncePerCause;
  /** Runs a wait, so that it counts in the time of the caller's request. */
  readonly waits: <T>(method: string, wait: () => Promise<T>) => Promise<T>;
}

/** The rules of one method; with a `staleMs` of Infinity a value serves until the next one is there. */
export interface MethodRules extends Pick<
  ResolvedCached,
  'ttlMs' | 'staleMs' | 'waitMs' | 'timeoutMs' | 'refreshAhead'
> {
  /** `'Catalogue.product'` */
  readonly method: string;
  readonly makeKey: MakeKey;
  /** The arguments make the key, so they are plain data. */
  readonly isPlain: boolean;
  readonly bounds: readonly Bound[];
  readonly level2: MethodLevel2 | null;
}

/** The values of one method of one instance, and its loads in flight. */
export abstract class MethodCache<Input> implements CachedCalls {
  protected readonly counters = new MethodCounters();
  protected readonly values: Values;
  private readonly flights = new Map<string, Flight<Entry>>();
  private droppedAtMs = -Infinity;

  constructor(
    protected readonly source: Source,
    protected readonly rules: MethodRules,
    protected readonly parts: CacheParts,
  ) {
    this.values = new Values(rules.method, rules.bounds, parts.report);
  }

  abstract call(args: unknown[]): Promise<unknown>;
  abstract makeKeys(args: readonly unknown[]): readonly (string | null)[];
  /** Loads the value of one key. */
  protected abstract loadOne(input: Input): Promise<unknown>;

  get method(): string {
    return this.rules.method;
  }

  get keepMs(): number {
    return this.rules.ttlMs + this.rules.staleMs;
  }

  drop(key: string | null): void {
    this.values.drop(key);
    this.dropLoads(key);
  }

  /** A load in flight began before, and is not kept. */
  protected dropLoads(key: string | null): void {
    if (key === null) this.flights.clear();
    else this.flights.delete(key);
    this.droppedAtMs = this.parts.nowMs();
  }

  missed(): void {
    this.drop(null);
  }

  close(): void {
    for (const flight of this.flights.values()) flight.stopClock();
  }

  stats(): CachedMethodStats {
    return this.counters.stats(this.method, this.values.size);
  }

  protected get isLoading(): boolean {
    return this.flights.size > 0;
  }

  protected get(key: string, input: Input): Promise<unknown> {
    const { counters, method, parts, rules } = this;
    const entry = this.values.get(key);
    const nowMs = parts.nowMs();
    if (entry === undefined || nowMs >= entry.staleUntilMs) {
      const flight = this.load(key, input);
      return parts.waits(method, () => this.wait(flight));
    }
    if (nowMs < entry.freshUntilMs) {
      if (rules.refreshAhead !== null && nowMs >= aheadMs(entry, rules.refreshAhead)) this.refresh(entry, input);
      counters.hits += 1;
      return this.serve(entry, nowMs);
    }
    const flight = this.refresh(entry, input);
    if (rules.waitMs > 0 && flight !== null) {
      return parts.waits(method, () => this.waitOrServe(flight, entry));
    }
    counters.stale += 1;
    return this.serve(entry, nowMs);
  }

  /** The load that replaces this value; null right after loads have failed. */
  protected refresh(entry: Entry, input: Input): Flight<Entry> | null {
    const underWay = this.flights.get(entry.key);
    if (underWay !== undefined) return underWay;
    if (this.parts.nowMs() < entry.retryAtMs) return null;
    const flight = this.fly(entry.key, input);
    flight.result.catch((error: unknown) => this.refreshFailed(entry, error));
    return flight;
  }

  protected load(key: string, input: Input): Flight<Entry> {
    return this.flights.get(key) ?? this.fly(key, input);
  }

  protected fly(key: string, input: Input): Flight<Entry> {
    const flight: Flight<Entry> = new Flight(this.method, this.rules.timeoutMs, () => {
      if (this.flights.get(key) === flight) this.flights.delete(key);
    });
    this.flights.set(key, flight);
    flight.result.catch(() => {
      this.counters.loads += 1;
      this.counters.failed += 1;
    });
    const startedMs = this.parts.nowMs();
    // A load begins later, when its caller may have changed what it gave.
    const given = this.rules.isPlain ? clonePlain(input) : input;
    // Callbacks settle the flight, without a promise chain: the load's stack must not lead to its callers.
    outsideRequests(() => this.obtain(key, given, flight, startedMs)).then(
      (entry) => flight.land(entry),
      (error: unknown) => flight.fail(error),
    );
    return flight;
  }

  private serve(entry: Entry, nowMs: number): Promise<unknown> {
    const { counters, values } = this;
    counters.savedMs += entry.loadMs;
    counters.ageMs.record(nowMs - entry.loadedAtMs);
    values.use(entry);
    return entry.promise;
  }

  private async wait(flight: Flight<Entry>): Promise<unknown> {
    this.counters.misses += 1;
    return (await flight.result).value;
  }

  /** Waits for the load for `waitMs`, and then takes the stale value while it may serve. */
  private async waitOrServe(flight: Flight<Entry>, entry: Entry): Promise<unknown> {
    const isLoaded = await within(this.rules.waitMs, () => flight.result).catch(() => false);
    const nowMs = this.parts.nowMs();
    if (isLoaded || nowMs >= entry.staleUntilMs) return this.wait(flight);
    this.counters.stale += 1;
    return this.serve(entry, nowMs);
  }

  private refreshFailed(entry: Entry, error: unknown): void {
    entry.failures += 1;
    entry.retryAtMs = this.parts.nowMs() + retryAfterMs(entry.failures);
    const cause = `A refresh of "${this.method}"`;
    const message = `${cause} failed: ${reasonOf(error)}. The last value serves until \`staleMs\` is over.`;
    this.parts.report.report(cause, message);
  }

  private async obtain(key: string, input: Input, flight: Flight<Entry>, startedMs: number): Promise<Entry> {
    const { counters, parts, rules } = this;
    const { level2, staleMs, ttlMs } = rules;
    const shared = level2 === null ? null : await level2.read(key);
    const found = shared === null ? null : this.sharedEntry(key, shared, startedMs);
    if (found !== null) {
      this.keep(found, flight);
      return found;
    }
    const times = computeTimes(parts.nowMs(), ttlMs, staleMs);
    const value = await this.loadOne(input);
    const loadMs = parts.nowMs() - times.loadedAtMs;
    counters.loadMs.record(loadMs);
    // A late load has been counted as a failure.
    if (!flight.isOver) counters.loads += 1;
    const entry = new Entry(key, value, times, times.loadedAtMs, loadMs);
    if (!this.keep(entry, flight)) return entry;
    if (shared !== null) level2!.write(entry, shared.atMs, entry.staleUntilMs - parts.nowMs());
    return entry;
  }

  /** The value that another pod has loaded, while it is of use. */
  private sharedEntry(key: string, { value: found }: Level2Answer, startedMs: number): Entry | null {
    if (found === null) return null;
    const { level2, refreshAhead, staleMs, ttlMs } = this.rules;
    // Its age counts from the start of the read.
    const times = computeTimes(startedMs - found.ageMs, ttlMs, staleMs);
    // A replacement must be newer.
    const isHeld = this.values.get(key) !== undefined;
    const usableUntilMs = isHeld ? aheadMs(times, refreshAhead ?? 1) : times.staleUntilMs;
    const read = this.parts.nowMs() < usableUntilMs ? level2!.parseValue(found.text) : null;
    if (read === null) return null;
    return new Entry(key, read.value, times, startedMs, this.counters.loadMs.meanMs);
  }

  /** False: it is too old, older than the kept value, or its load began before an invalidation. */
  protected keep(entry: Entry, flight: Flight<Entry>): boolean {
    const { key, staleUntilMs, startedMs } = entry;
    const held = this.values.get(key);
    const isInTime = this.flights.get(key) === flight || startedMs > this.droppedAtMs;
    const isNewer = held === undefined || held.startedMs <= startedMs;
    return isInTime && isNewer && this.parts.nowMs() < staleUntilMs && this.values.add(entry);
  }
}
