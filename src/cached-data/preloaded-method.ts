import { PerfError } from '../core/perf.error.js';
import { reasonOf } from '../core/reason.js';
import { inRootContext } from '../core/root-context.js';
import type { CachedMethodStats, Finding } from '../core/snapshot.js';
import type { ResolvedPreloaded } from './cached.options.js';
import { Flight, outsideRequests, retryAfterMs } from './flight.js';
import type { CacheParts } from './method-cache.js';
import { MethodCounters } from './method-counters.js';
import { LoadTimes, type Times } from './readings.js';
import type { Source, StandIn } from './stand-in.js';

/** Pods that started together must not load together for ever. */
const JITTER = 0.1;

interface Held extends Times {
  readonly value: unknown;
  readonly promise: Promise<unknown>;
  readonly startedMs: number;
}

/** Of a `@Preloaded()` method: one value, which is always there. */
export class PreloadedMethod implements StandIn {
  private readonly counters = new MethodCounters();
  private held: Held | null = null;
  private wasLoaded = false;
  private flight: Flight<Held> | null = null;
  private droppedAtMs = -Infinity;
  private failures = 0;
  private timer: NodeJS.Timeout | null = null;
  private isClosed = false;
  readonly keepMs = 0;

  constructor(
    readonly method: string,
    private readonly source: Source,
    private readonly options: ResolvedPreloaded,
    private readonly parts: CacheParts,
  ) {}

  /**
   * Loads for the first time, and then on the interval. Resolves when the server may listen.
   * @throws PERF_ERR_NOT_LOADED
   */
  async start(): Promise<void> {
    // Somebody may have asked for it already.
    if (this.held !== null) return;
    const flight = this.flight ?? this.fly();
    if (!this.options.required) return;
    try {
      await flight.result;
    } catch (error) {
      const reason = reasonOf(error);
      throw new PerfError(
        'PERF_ERR_NOT_LOADED',
        `\`@Preloaded()\` on "${this.method}" could not be loaded before the server listens: ${reason}. ` +
          'With `required: false` the application starts without it.',
        { cause: error },
      );
    }
  }

  close(): void {
    this.isClosed = true;
    this.flight?.stopClock();
    if (this.timer !== null) clearTimeout(this.timer);
  }

  call(): Promise<unknown> {
    const { held, parts } = this;
    if (held !== null) {
      const nowMs = parts.nowMs();
      if (nowMs < held.freshUntilMs) {
        this.counters.hits += 1;
        // One that is overdue serves without a bound: what is made of it has its own.
        parts.readings.reader()?.reads(held);
      } else this.counters.stale += 1;
      this.counters.savedMs += this.counters.loadMs.meanMs;
      this.counters.ageMs.record(nowMs - held.loadedAtMs);
      return held.promise;
    }
    this.counters.misses += 1;
    if (!this.options.required && !this.wasLoaded) return Promise.reject(this.notLoaded());
    const flight = this.flight ?? this.fly();
    const reader = parts.readings.reader();
    return parts.waits(this.method, () =>
      flight.result.then((loaded) => {
        reader?.reads(loaded);
        return loaded.value;
      }),
    );
  }

  keysOf(): readonly null[] {
    return [null];
  }

  /** The next value is loaded at once, and callers wait for it. */
  drop(): void {
    this.held = null;
    this.flight = null;
    this.droppedAtMs = this.parts.nowMs();
    if (!this.isClosed) this.fly();
  }

  missed(): void {
    if (!this.isClosed && this.flight === null) this.fly();
  }

  stats(): CachedMethodStats {
    return this.counters.stats(this.method, this.held === null ? 0 : 1);
  }

  findings(): readonly Finding[] {
    return [];
  }

  /** Of a required one that was to be loaded again and was not, what is wrong; else null. */
  overdue(): string | null {
    const { held, failures, method, options, parts } = this;
    if (!options.required) return null;
    if (held === null) return failures === 0 ? null : `preloaded data: "${method}" cannot be loaded`;
    const ageMs = parts.nowMs() - held.startedMs;
    return ageMs < this.longestMs
      ? null
      : `preloaded data: "${method}" is ${seconds(ageMs)} s old, and due every ${seconds(options.everyMs)} s`;
  }

  /** From the beginning of a load to the end of the next. */
  private get longestMs(): number {
    const { everyMs, timeoutMs } = this.options;
    return everyMs * (1 + JITTER) + timeoutMs;
  }

  private fly(): Flight<Held> {
    if (this.timer !== null) clearTimeout(this.timer);
    const flight: Flight<Held> = new Flight(this.method, this.options.timeoutMs, () => {
      if (this.flight === flight) this.flight = null;
    });
    this.flight = flight;
    flight.result.then(
      () => this.loaded(),
      (error: unknown) => this.failed(error),
    );
    outsideRequests(() => this.load(flight)).then(
      (held) => flight.land(held),
      (error: unknown) => flight.fail(error),
    );
    return flight;
  }

  private async load(flight: Flight<Held>): Promise<Held> {
    const { counters, parts } = this;
    const times = new LoadTimes(parts.nowMs(), this.longestMs, 0);
    try {
      const value: unknown = await parts.readings.run(times, () => this.source());
      counters.loadMs.record(parts.nowMs() - times.startedMs);
      parts.freeze(value, this.method);
      const { startedMs, loadedAtMs, freshUntilMs } = times;
      const held = { value, promise: Promise.resolve(value), startedMs, loadedAtMs, freshUntilMs };
      const isInTime = this.flight === flight || startedMs > this.droppedAtMs;
      if (isInTime && (this.held === null || this.held.startedMs <= startedMs)) {
        this.held = held;
        this.wasLoaded = true;
      }
      return held;
    } catch (error) {
      counters.failed += 1;
      throw error;
    } finally {
      counters.loads += 1;
    }
  }

  private loaded(): void {
    this.failures = 0;
    this.loadIn(this.options.everyMs);
  }

  private failed(error: unknown): void {
    this.failures += 1;
    this.loadIn(Math.min(this.options.everyMs, retryAfterMs(this.failures)));
    const reason = reasonOf(error);
    const rest = this.held === null ? 'There is no value.' : 'The last value serves on.';
    this.parts.report.report(`A load of "${this.method}"`, `A load of "${this.method}" failed: ${reason}. ${rest}`);
  }

  /** Counted from the end of a load, so that no two overlap. */
  private loadIn(ms: number): void {
    if (this.isClosed || this.flight !== null) return;
    const jittered = ms * (1 + JITTER * (2 * Math.random() - 1));
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = inRootContext(() => setTimeout(() => this.fly(), jittered).unref());
  }

  private notLoaded(): PerfError {
    return new PerfError(
      'PERF_ERR_NOT_LOADED',
      `\`@Preloaded({ required: false })\` on "${this.method}" has no value yet: its first load has not succeeded. ` +
        'With `required: true` the application starts only with one.',
    );
  }
}

const seconds = (ms: number): string => String(Number((ms / 1_000).toPrecision(3)));
