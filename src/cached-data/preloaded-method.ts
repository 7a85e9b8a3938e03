import { PerfError } from '../core/perf.error.js';
import { describeReason } from '../core/reason.js';
import { inRootContext } from '../core/root-context.js';
import type { ResolvedPreloaded } from './cached.options.js';
import type { Entry } from './entry.js';
import { retryAfterMs, type Flight } from './flight.js';
import { MethodCache, type CacheParts, type Source } from './method-cache.js';

/** Pods that started together must not load together for ever. */
const JITTER = 0.1;
/** Key of the only value. */
const KEY = '';

/** A `@Preloaded()` method: one value, which is always available. */
export class PreloadedMethod extends MethodCache<null> {
  /** It has had a value, which may be a stale one, or forgotten, by now. */
  hasLoaded = false;
  private failures = 0;
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(
    method: string,
    source: Source,
    private readonly options: ResolvedPreloaded,
    parts: CacheParts,
  ) {
    const { everyMs, timeoutMs } = options;
    // Covers the time from the start of a load to the end of the next.
    const ttlMs = everyMs * (1 + JITTER) + timeoutMs;
    const times = { ttlMs, staleMs: Infinity, waitMs: 0, timeoutMs, refreshAhead: null, maxEntries: null };
    super(source, { ...times, method, makeKey: () => KEY, isPlain: false, bound: null, level2: null }, parts);
  }

  override get keepMs(): number {
    return 0;
  }

  /**
   * Loads for the first time, and then on the interval. Resolves when the server may listen.
   * @throws PERF_ERR_NOT_LOADED
   */
  async start(): Promise<void> {
    // An early call may have loaded it already.
    if (this.held !== undefined) return;
    const flight = this.load(KEY, null);
    if (!this.options.required) return;
    try {
      await flight.result;
    } catch (error) {
      throw new PerfError(
        'PERF_ERR_NOT_LOADED',
        `\`@Preloaded()\` on "${this.method}" could not be loaded before the server listens: ${describeReason(error)}. ` +
          'With `required: false` the application starts without it.',
        { cause: error },
      );
    }
  }

  call(): Promise<unknown> {
    if (this.options.required || this.hasLoaded) return this.get(KEY, null);
    this.counts.misses += 1;
    const error = new PerfError(
      'PERF_ERR_NOT_LOADED',
      `\`@Preloaded({ required: false })\` on "${this.method}" has no value yet: its first load has not succeeded. ` +
        'With `required: true` the application starts only with one.',
    );
    return Promise.reject(error);
  }

  makeKeys(): readonly null[] {
    return [null];
  }

  /** The next value is loaded at once, and callers wait for it. */
  override drop(): void {
    super.drop(null);
    this.missed();
  }

  /** The value serves until the next one is there. */
  override missed(): void {
    this.dropLoads(null);
    if (!this.isClosed) this.load(KEY, null);
  }

  override close(): void {
    this.isClosed = true;
    super.close();
    clearTimeout(this.timer);
  }

  /** The fault of a required value whose next load is overdue; null without one. */
  overdue(): string | null {
    const { failures, held, method, options, parts, rules } = this;
    if (!options.required) return null;
    if (held === undefined) return failures === 0 ? null : `preloaded data: "${method}" cannot be loaded`;
    const ageMs = parts.nowMs() - held.startedMs;
    return ageMs < rules.ttlMs
      ? null
      : `preloaded data: "${method}" is ${seconds(ageMs)} s old, and due every ${seconds(options.everyMs)} s`;
  }

  protected async loadOne(): Promise<unknown> {
    return this.source();
  }

  /** Never loads on a call: the interval does. */
  protected override refresh(): null {
    return null;
  }

  protected override startLoad(key: string, input: null): Flight<Entry> {
    clearTimeout(this.timer);
    const flight = super.startLoad(key, input);
    flight.result.then(
      () => this.loaded(),
      (error: unknown) => this.failed(error),
    );
    return flight;
  }

  /** Keeps a value that arrives after `timeoutMs` too, when its load has long failed. */
  protected override keep(entry: Entry, flight: Flight<Entry>): boolean {
    const isKept = super.keep(entry, flight);
    if (isKept) this.loaded();
    return isKept;
  }

  private get held(): Entry | undefined {
    return this.values.get(KEY);
  }

  private loaded(): void {
    this.hasLoaded ||= this.held !== undefined;
    this.failures = 0;
    this.loadIn(this.options.everyMs);
  }

  private failed(error: unknown): void {
    this.failures += 1;
    this.loadIn(Math.min(this.options.everyMs, retryAfterMs(this.failures)));
    const [what, rest] =
      this.held === undefined ? ['A load', 'There is no value.'] : ['A refresh', 'The last value serves on.'];
    const cause = `${what} of "${this.method}"`;
    this.parts.report.report(cause, `${cause} failed: ${describeReason(error)}. ${rest}`);
  }

  /** Counted from the end of a load, so that no two overlap. */
  private loadIn(ms: number): void {
    if (this.isClosed || this.isLoading) return;
    const jittered = ms * (1 + JITTER * (2 * Math.random() - 1));
    clearTimeout(this.timer);
    this.timer = inRootContext(() => setTimeout(() => this.load(KEY, null), jittered).unref());
  }
}

const seconds = (ms: number): string => String(Number((ms / 1_000).toPrecision(3)));
