import { Histogram } from '../core/histogram.js';
import { describeReason } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import type { CachedMethodStats } from '../core/snapshot.js';
import { within } from '../core/within.js';
import type { MakeKey } from './cache-key.js';
import type { ResolvedCached } from './cached.options.js';
import { Entry } from './entry.js';
import { Flight, outsideRequests, retryAfterMs } from './flight.js';
import type { Level2, Level2Answer } from './level2.js';
import { clonePlain, fromText, toText } from './value.js';
import { Values, type Bound } from './values.js';

/** A method as its class declares it, bound to its instance. */
export type Source = (...args: unknown[]) => unknown;

/** Collaborators that the cached methods of an application share. */
export interface CacheParts {
  readonly nowMs: () => number;
  readonly report: OncePerCause;
  /** Runs a wait, so that it counts in the time of the caller's request. */
  readonly waits: <T>(method: string, wait: () => Promise<T>) => Promise<T>;
}

/** The rules of one method; with a `staleMs` of Infinity a value serves until the next one is there. */
export interface MethodRules extends Omit<ResolvedCached, 'key' | 'batch' | 'level2'> {
  /** `'Catalogue.product'` */
  readonly method: string;
  readonly makeKey: MakeKey;
  /** The arguments make the key, so they are plain data. */
  readonly isPlain: boolean;
  readonly bound: Bound | null;
  readonly level2: Level2 | null;
}

/** The values of one decorated method of one instance, and its loads in flight, while the application runs. */
export abstract class MethodCache<Input> {
  protected readonly counts = { hits: 0, stale: 0, misses: 0, loads: 0, failed: 0, savedMs: 0 };
  protected readonly values: Values;
  private readonly ageMs = new Histogram();
  private readonly loadMs = new Histogram();
  private readonly flights = new Map<string, Flight<Entry>>();
  private droppedAtMs = -Infinity;

  constructor(
    protected readonly source: Source,
    protected readonly rules: MethodRules,
    protected readonly parts: CacheParts,
  ) {
    this.values = new Values(rules.method, rules.maxEntries, rules.bound, parts.report);
  }

  abstract call(args: unknown[]): Promise<unknown>;
  /**
   * Keys of the values that a call with these arguments reads; null: there is one only.
   * @throws PERF_ERR_CACHE_KEY
   */
  abstract makeKeys(args: readonly unknown[]): readonly (string | null)[];
  /** Loads the value of one key. */
  protected abstract loadOne(input: Input): Promise<unknown>;

  get method(): string {
    return this.rules.method;
  }

  /** The longest time that a value may serve, milliseconds. */
  get keepMs(): number {
    return this.rules.ttlMs + this.rules.staleMs;
  }

  /** Forgets one value, or all with null. */
  drop(key: string | null): void {
    this.values.drop(key);
    this.dropLoads(key);
  }

  /** Keeps no value of a load in flight: it began before the invalidation. */
  protected dropLoads(key: string | null): void {
    if (key === null) this.flights.clear();
    else this.flights.delete(key);
    this.droppedAtMs = this.parts.nowMs();
  }

  /** Messages of other pods may have been lost: they may have invalidated anything. */
  missed(): void {
    this.drop(null);
  }

  /** Stops the timers of loads in flight. */
  close(): void {
    for (const flight of this.flights.values()) flight.stopClock();
  }

  stats(): CachedMethodStats {
    const { ageMs, counts, loadMs, method, values } = this;
    return { method, entries: values.size, ...counts, ageMs: ageMs.figures(), loadMs: loadMs.figures() };
  }

  protected get isLoading(): boolean {
    return this.flights.size > 0;
  }

  protected get(key: string, input: Input): Promise<unknown> {
    const { counts, method, parts, rules } = this;
    const entry = this.values.get(key);
    const nowMs = parts.nowMs();
    if (entry === undefined || nowMs >= entry.staleUntilMs) {
      const flight = this.load(key, input);
      return parts.waits(method, () => this.wait(flight));
    }
    if (nowMs < entry.freshUntilMs) {
      if (nowMs >= this.refreshAtMs(entry.loadedAtMs)) this.refresh(entry, input);
      counts.hits += 1;
      return this.serve(entry, nowMs);
    }
    const flight = this.refresh(entry, input);
    if (rules.waitMs > 0 && flight !== null) {
      return parts.waits(method, () => this.waitOrServe(flight, entry));
    }
    counts.stale += 1;
    return this.serve(entry, nowMs);
  }

  /** The load that replaces this value; null right after loads have failed. */
  protected refresh(entry: Entry, input: Input): Flight<Entry> | null {
    const underWay = this.flights.get(entry.key);
    if (underWay !== undefined) return underWay;
    if (this.parts.nowMs() < entry.retryAtMs) return null;
    const flight = this.startLoad(entry.key, input);
    flight.result.catch((error: unknown) => this.refreshFailed(entry, error));
    return flight;
  }

  protected load(key: string, input: Input): Flight<Entry> {
    return this.flights.get(key) ?? this.startLoad(key, input);
  }

  protected startLoad(key: string, input: Input): Flight<Entry> {
    const flight: Flight<Entry> = new Flight(this.method, this.rules.timeoutMs, () => {
      if (this.flights.get(key) === flight) this.flights.delete(key);
    });
    this.flights.set(key, flight);
    flight.result.catch(() => {
      this.counts.loads += 1;
      this.counts.failed += 1;
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

  /** When the next caller of a fresh value starts its replacement, by the time at which it was loaded. */
  private refreshAtMs(loadedAtMs: number): number {
    return loadedAtMs + this.rules.ttlMs * (this.rules.refreshAhead ?? 1);
  }

  private serve(entry: Entry, nowMs: number): Promise<unknown> {
    this.counts.savedMs += entry.loadMs;
    this.ageMs.record(nowMs - entry.loadedAtMs);
    this.values.use(entry);
    return entry.promise;
  }

  private async wait(flight: Flight<Entry>): Promise<unknown> {
    this.counts.misses += 1;
    return (await flight.result).value;
  }

  /** Waits for the load for `waitMs`, and then takes the stale value while it may serve. */
  private async waitOrServe(flight: Flight<Entry>, entry: Entry): Promise<unknown> {
    const isLoaded = await within(this.rules.waitMs, () => flight.result).catch(() => false);
    const nowMs = this.parts.nowMs();
    if (isLoaded || nowMs >= entry.staleUntilMs) return this.wait(flight);
    this.counts.stale += 1;
    return this.serve(entry, nowMs);
  }

  private refreshFailed(entry: Entry, error: unknown): void {
    entry.failures += 1;
    entry.retryAtMs = this.parts.nowMs() + retryAfterMs(entry.failures);
    const cause = `A refresh of "${this.method}" failed`;
    const message = `${cause}: ${describeReason(error)}. The last value serves until \`staleMs\` is over.`;
    this.parts.report.report(cause, message);
  }

  private async obtain(key: string, input: Input, flight: Flight<Entry>, startedMs: number): Promise<Entry> {
    const { parts, rules } = this;
    const { level2 } = rules;
    const shared = level2 === null ? null : await this.readLevel2(level2, key);
    const found = shared === null ? null : this.readShared(key, shared, startedMs);
    if (found !== null) {
      this.keep(found, flight);
      return found;
    }
    const loadedAtMs = parts.nowMs();
    const value = await this.loadOne(input);
    const loadMs = parts.nowMs() - loadedAtMs;
    this.loadMs.record(loadMs);
    // A late load has been counted as a failure.
    if (!flight.isOver) this.counts.loads += 1;
    const entry = new Entry(key, value, loadedAtMs, rules, loadedAtMs, loadMs);
    if (!this.keep(entry, flight)) return entry;
    if (shared !== null) this.writeLevel2(level2!, entry, shared.atMs);
    return entry;
  }

  protected readLevel2(level2: Level2, key: string): Promise<Level2Answer | null> {
    return level2.read(this.method, key);
  }

  /** `atMs`: the time on the clock of level 2 at its read, before the load. */
  private writeLevel2(level2: Level2, { key, value, staleUntilMs }: Entry, atMs: number): void {
    const keepMs = staleUntilMs - this.parts.nowMs();
    if (keepMs <= 0) return;
    const text = toText(value);
    if (text !== null) {
      level2.write(this.method, key, text, { loadedAtMs: atMs, keepMs });
      return;
    }
    const cause = `"${this.method}" stays in level 1`;
    const advice = 'Return plain data, or set `level2: false`.';
    this.parts.report.report(cause, `${cause}: JSON would lose something of its value. ${advice}`);
  }

  /** The value that another pod has loaded, while it is of use. */
  private readShared(key: string, { value: found }: Level2Answer, startedMs: number): Entry | null {
    if (found === null) return null;
    // Its age counts from the start of the read.
    const loadedAtMs = startedMs - found.ageMs;
    // A held value is replaced only by one that needs no refresh itself.
    const isHeld = this.values.get(key) !== undefined;
    const usableUntilMs = isHeld ? this.refreshAtMs(loadedAtMs) : loadedAtMs + this.keepMs;
    if (this.parts.nowMs() >= usableUntilMs) return null;
    try {
      return new Entry(key, fromText(found.text), loadedAtMs, this.rules, startedMs, this.loadMs.meanMs);
    } catch (error) {
      const cause = `The level that all pods share holds no JSON for "${this.method}"`;
      this.parts.report.report(cause, `${cause}: ${String(error)}. The method is called instead.`);
      return null;
    }
  }

  /** Keeps a value. False: it is too old, older than the kept one, or its load began before an invalidation. */
  protected keep(entry: Entry, flight: Flight<Entry>): boolean {
    const { key, staleUntilMs, startedMs } = entry;
    const held = this.values.get(key);
    const isInTime = this.flights.get(key) === flight || startedMs > this.droppedAtMs;
    const isNewer = held === undefined || held.startedMs <= startedMs;
    return isInTime && isNewer && this.parts.nowMs() < staleUntilMs && this.values.add(entry);
  }
}
