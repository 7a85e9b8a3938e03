import { reasonOf } from '../core/reason.js';
import type { OncePerCause } from '../core/reporter.js';
import { within } from '../core/within.js';
import type { Bound } from './bound.js';
import { aheadMs, Entry } from './entry.js';
import { Flight, outsideRequests, retryAfterMs } from './flight.js';
import type { Level2Answer } from './level2.js';
import { MethodCounters } from './method-counters.js';
import type { MethodLevel2 } from './method-level2.js';
import { LoadTimes, type Reader, type Readings } from './readings.js';
import { bytesOf } from './value.js';

/** What the cached methods of an application share. */
export interface CacheParts {
  readonly nowMs: () => number;
  readonly readings: Readings;
  readonly report: OncePerCause;
  /** Room for all of them. */
  readonly bound: Bound;
  readonly maxBytes: number;
  /** Outside of production: a value that all callers share is not to be changed. Never throws. */
  readonly freeze: (value: unknown, method: string) => void;
  /** Runs what a caller has to wait for, so that it is seen in the time of the caller's request. */
  readonly waits: <T>(method: string, wait: () => Promise<T>) => Promise<T>;
}

/** What one method asks for. */
export interface MethodRules {
  /** `'Catalogue.product'` */
  readonly method: string;
  readonly ttlMs: number;
  readonly staleMs: number;
  readonly waitMs: number;
  readonly timeoutMs: number;
  readonly refreshAhead: number | null;
  /** What a call is given tells its key, so that it is plain data. */
  readonly isPlain: boolean;
  /** Room for this method alone. */
  readonly bound: Bound | null;
  readonly level2: MethodLevel2 | null;
}

/** Asks the source for the value of one key. */
export type LoadOne<Input> = (input: Input, times: LoadTimes) => Promise<unknown>;

/** The values of one method of one instance, and the loads that are under way. */
export class MethodCache<Input> {
  readonly counters = new MethodCounters();
  private readonly entries = new Map<string, Entry>();
  private readonly flights = new Map<string, Flight<Entry>>();
  private droppedAtMs = -Infinity;

  constructor(
    readonly rules: MethodRules,
    private readonly parts: CacheParts,
    private readonly loadOne: LoadOne<Input>,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string, input: Input): Promise<unknown> {
    const { counters, parts, rules } = this;
    const entry = this.entries.get(key);
    const nowMs = parts.nowMs();
    const reader = parts.readings.reader();
    if (entry === undefined || nowMs >= entry.staleUntilMs) {
      const flight = this.flights.get(key) ?? this.fly(key, input, nowMs);
      return parts.waits(rules.method, () => this.wait(flight, reader));
    }
    if (nowMs < entry.freshUntilMs) {
      if (rules.refreshAhead !== null && nowMs >= aheadMs(entry, rules.refreshAhead)) this.refresh(entry, input, nowMs);
      counters.hits += 1;
      return this.serve(entry, nowMs, reader);
    }
    const flight = this.refresh(entry, input, nowMs);
    if (rules.waitMs > 0 && flight !== null) {
      return parts.waits(rules.method, () => this.waitOrServe(flight, entry, reader));
    }
    counters.stale += 1;
    return this.serve(entry, nowMs, reader);
  }

  /** What is being loaded began before, and is not kept. */
  drop(key: string): void {
    const entry = this.entries.get(key);
    if (entry !== undefined) this.remove(entry);
    this.flights.delete(key);
    this.droppedAtMs = this.parts.nowMs();
  }

  close(): void {
    for (const flight of this.flights.values()) flight.stopClock();
  }

  dropAll(): void {
    for (const entry of this.entries.values()) this.remove(entry);
    this.flights.clear();
    this.droppedAtMs = this.parts.nowMs();
  }

  private serve(entry: Entry, nowMs: number, reader: Reader | null): Promise<unknown> {
    const { counters, parts, rules } = this;
    counters.savedMs += entry.loadMs;
    counters.ageMs.record(nowMs - entry.loadedAtMs);
    parts.bound.use(entry);
    rules.bound?.use(entry);
    reader?.reads(entry);
    return entry.promise;
  }

  private async wait(flight: Flight<Entry>, reader: Reader | null): Promise<unknown> {
    this.counters.misses += 1;
    const entry = await flight.result;
    reader?.reads(entry);
    return entry.value;
  }

  /** The load that is to replace this value; null where loads have failed a moment ago. */
  private refresh(entry: Entry, input: Input, nowMs: number): Flight<Entry> | null {
    const underWay = this.flights.get(entry.key);
    if (underWay !== undefined) return underWay;
    if (nowMs < entry.retryAtMs) return null;
    const flight = this.fly(entry.key, input, nowMs);
    flight.result.catch((error: unknown) => this.refreshFailed(entry, error));
    return flight;
  }

  private refreshFailed(entry: Entry, error: unknown): void {
    this.retryLater(entry, entry.failures + 1);
    const { method } = this.rules;
    const reason = reasonOf(error);
    this.parts.report.report(
      `A refresh of "${method}"`,
      `A refresh of "${method}" failed: ${reason}. The last value serves until \`staleMs\` is over.`,
    );
  }

  private retryLater(entry: Entry, failures: number): void {
    entry.failures = failures;
    entry.retryAtMs = this.parts.nowMs() + retryAfterMs(failures);
  }

  /** Waits for the load for `waitMs`, and then takes the stale value while it may serve. */
  private async waitOrServe(flight: Flight<Entry>, entry: Entry, reader: Reader | null): Promise<unknown> {
    const isLoaded = await within(this.rules.waitMs, () => flight.result).catch(() => false);
    const nowMs = this.parts.nowMs();
    if (isLoaded || nowMs >= entry.staleUntilMs) return this.wait(flight, reader);
    this.counters.stale += 1;
    return this.serve(entry, nowMs, reader);
  }

  private fly(key: string, input: Input, nowMs: number): Flight<Entry> {
    const flight: Flight<Entry> = new Flight(this.rules.method, this.rules.timeoutMs, () => {
      if (this.flights.get(key) === flight) this.flights.delete(key);
    });
    this.flights.set(key, flight);
    // A load begins later, when its caller may have changed what it gave.
    const given = this.rules.isPlain ? copyOf(input) : input;
    // Not chained: a stack of the load must not lead to those who wait.
    outsideRequests(() => this.obtain(key, given, flight, nowMs)).then(
      (entry) => flight.land(entry),
      (error: unknown) => flight.fail(error),
    );
    return flight;
  }

  private async obtain(key: string, input: Input, flight: Flight<Entry>, startedMs: number): Promise<Entry> {
    const { level2 } = this.rules;
    const shared = level2 === null ? null : await level2.read(key);
    const found = shared === null ? null : this.sharedEntry(key, shared, startedMs);
    if (found !== null) {
      this.keep(found, flight);
      return found;
    }
    const times = new LoadTimes(this.parts.nowMs(), this.rules.ttlMs, this.rules.staleMs);
    try {
      const value = await this.loadOne(input, times);
      const loadMs = this.parts.nowMs() - times.startedMs;
      this.parts.freeze(value, this.rules.method);
      const entry: Entry = new Entry(key, value, times, times.startedMs, loadMs, () => this.remove(entry));
      this.counters.loadMs.record(loadMs);
      const isKept = this.keep(entry, flight);
      // It was made of something stale: asking again at once would give the same.
      if (isKept && this.parts.nowMs() >= entry.freshUntilMs) this.retryLater(entry, 1);
      if (isKept && shared !== null) level2!.write(entry, shared.atMs, entry.staleUntilMs - this.parts.nowMs());
      return entry;
    } catch (error) {
      this.counters.failed += 1;
      throw error;
    } finally {
      this.counters.loads += 1;
    }
  }

  /** What another pod has loaded, as far as it is of use. */
  private sharedEntry(key: string, { value: found }: Level2Answer, startedMs: number): Entry | null {
    if (found === null) return null;
    const nowMs = this.parts.nowMs();
    const { level2, method, refreshAhead, staleMs, ttlMs } = this.rules;
    // Its age is counted from the start of the read: the answer has been on its way since.
    const times = new LoadTimes(startedMs - found.ageMs, ttlMs, staleMs);
    // What is to replace a value must not be as old.
    const usableUntilMs = this.entries.has(key) ? aheadMs(times, refreshAhead ?? 1) : times.staleUntilMs;
    const read = nowMs < usableUntilMs ? level2!.valueOf(found) : null;
    if (read === null) return null;
    this.parts.freeze(read.value, method);
    const loadMs = this.counters.loadMs.meanMs;
    const entry: Entry = new Entry(key, read.value, times, startedMs, loadMs, () => this.remove(entry));
    return entry;
  }

  /** A cache that has no room, or fails, is none: the value goes to those who wait. */
  private keep(entry: Entry, flight: Flight<Entry>): boolean {
    const { parts, rules } = this;
    const { key, startedMs } = entry;
    const held = this.entries.get(key);
    const isInTime = this.flights.get(key) === flight || startedMs > this.droppedAtMs;
    const isNewer = held === undefined || held.startedMs <= startedMs;
    if (!isInTime || !isNewer || parts.nowMs() >= entry.staleUntilMs) return false;
    try {
      if (held !== undefined) this.remove(held);
      entry.bytes = key.length * 2 + bytesOf(entry.value, parts.maxBytes);
      if (parts.bound.add(entry)) {
        rules.bound?.add(entry);
        this.entries.set(key, entry);
        return true;
      }
      const cause = `A value of "${rules.method}"`;
      parts.report.report(cause, `${cause} is larger than \`maxBytes\` (${parts.maxBytes}) and is not kept.`);
    } catch (error) {
      parts.report.report(`cache of "${rules.method}"`, `A value of "${rules.method}" was not kept: ${String(error)}`);
    }
    return false;
  }

  private remove(entry: Entry): void {
    this.parts.bound.remove(entry);
    this.rules.bound?.remove(entry);
    if (this.entries.get(entry.key) === entry) this.entries.delete(entry.key);
  }
}

function copyOf<T>(input: T): T {
  try {
    return structuredClone(input);
  } catch {
    // A proxy is plain as well, and cannot be cloned.
    return input;
  }
}
