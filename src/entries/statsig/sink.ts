import { hostname } from 'node:os';
import { number, object, choice, optionError, string, value } from '../../core/option.js';
import type { PerfRecord, RequestRecord } from '../../core/record.js';
import type { PerfSink, PerfSinkHost } from '../../core/sink.js';
import { within } from '../../core/within.js';
import { adapterFor, type StatsigAdapter } from './adapter.js';
import { reasonWithoutKey, type StatsigClient, type StatsigEvent } from './client.js';
import { blockEvent, requestEvent, resourceEvent } from './events.js';
import { label } from './limits.js';
import { PodLatency, Rollup } from './rollup.js';

/** How long events wait for others to share a post with. */
const SEND_EVERY_MS = 10_000;
/** Events of a post: half of the size at which the SDK posts by itself. */
const BATCH = 500;
/** How long the SDK may take for a post. Its timer keeps the process alive as long. */
const POST_TIMEOUT_MS = 5_000;
/** Ends an interval where no resource sample does (`resources: false`). */
const LONGEST_INTERVAL_MS = 60_000;

export interface StatsigSinkOptions {
  /** `new StatsigServer(secret)` of `statsig-node`, or `new Statsig(secret)` of `@statsig/statsig-node-core`. It stays yours: the sink never shuts it down. */
  client: StatsigClient;
  /**
   * `'each'`: one `api_request` per request, with its user. `'rollup'`: one per interval, route, status class and
   * variants, with count, sum and sum of squares; for traffic whose events would cost too much CPU or money.
   * @default 'each'
   */
  requests?: 'each' | 'rollup';
  /**
   * Share of the requests that are sent with `'each'`, above 0 and at most 1; written on the event, so that counts can
   * be multiplied back. `pod_latency` counts every request whatever it is.
   * @default 1
   */
  sampleRate?: number;
  /**
   * Name of this process in every event, and its user where no unit is known.
   * @default the host name
   */
  pod?: string;
}

const table = object({
  client: value<StatsigClient>(
    'a Statsig client: an object with `logEvent()`',
    (given) => typeof (given as Partial<StatsigClient> | null | undefined)?.logEvent === 'function',
  ),
  requests: choice(['each', 'rollup'], { default: 'each' }),
  sampleRate: number({ default: 1, unit: 'a share of the requests', max: 1 }),
  pod: string({ default: hostname(), what: 'a name', test: (name) => name !== '' }),
});

/**
 * Sends requests, blocks and the pod's CPU, memory and latency to Statsig as events, so that a gate can be judged by
 * what it does to them. An interval is the time between two resource samples (`resources.intervalMs`), else a minute.
 * @throws PERF_ERR_OPTION
 */
export function statsigSink(options: StatsigSinkOptions): PerfSink {
  const resolved = table.read(options, 'statsigSink');
  if (resolved.requests === 'rollup' && resolved.sampleRate < 1) {
    const expected = "1 with `requests: 'rollup'`, which counts every request";
    throw optionError('statsigSink.sampleRate', expected, resolved.sampleRate);
  }
  return new StatsigSink(resolved);
}

class StatsigSink implements PerfSink {
  readonly name = 'statsig';
  private readonly pod: string;
  private readonly adapter: StatsigAdapter;
  /** The SDK gets them in the turn of the call that posts them: events that it posts by itself, it posts again for hours. */
  private waiting: StatsigEvent[] = [];
  private posted = 0;
  private posting: Promise<void> | null = null;
  private readonly rollup: Rollup | null;
  private readonly latency = new PodLatency();
  private intervalStartedMs = 0;
  private timer: NodeJS.Timeout | null = null;
  /** Applications that were started and not closed: a module class imported by two tests shares its sinks. */
  private applications = 0;
  private host: PerfSinkHost | null = null;

  constructor(private readonly options: Required<StatsigSinkOptions>) {
    this.pod = label(options.pod);
    this.rollup = options.requests === 'rollup' ? new Rollup() : null;
    this.adapter = adapterFor(options.client);
  }

  async start(host: PerfSinkHost): Promise<void> {
    this.host = host;
    this.applications += 1;
    await this.adapter.start((message) => host.report?.(message, message));
    this.intervalStartedMs = performance.now();
    this.timer ??= setInterval(() => {
      if (this.posting !== null) return;
      const isOver = performance.now() - this.intervalStartedMs >= LONGEST_INTERVAL_MS;
      void this.send(isOver ? this.intervalEvents() : []);
    }, SEND_EVERY_MS).unref();
  }

  /** Waits for the post of each full batch: the recorder holds what comes meanwhile, within its bound. The SDK has none of its own. */
  async publish(records: readonly PerfRecord[]): Promise<void> {
    const events: StatsigEvent[] = [];
    for (const record of records) {
      if (record.kind === 'request') this.addRequest(record, events);
      else if (record.kind === 'block') events.push(blockEvent(record, this.pod));
      else if (record.kind === 'resource') events.push(resourceEvent(record, this.pod), ...this.intervalEvents());
    }
    this.waiting.push(...events);
    while (this.waiting.length >= BATCH) await this.post();
  }

  async flush(deadlineMs: number): Promise<void> {
    // A little earlier, so that the reason is the recorder's report.
    if (await within(deadlineMs * 0.9, () => this.send(this.intervalEvents()))) return;
    throw new Error(`no answer to ${this.waiting.length + this.posted} events in time`);
  }

  async close(): Promise<void> {
    this.applications = Math.max(0, this.applications - 1);
    if (this.applications > 0 || this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
  }

  private async send(events: readonly StatsigEvent[]): Promise<void> {
    this.waiting.push(...events);
    while (this.waiting.length > 0 || this.posting !== null) await this.post();
  }

  /** One post at a time. Never rejects. */
  private post(): Promise<void> {
    return (this.posting ??= this.postBatch().finally(() => (this.posting = null)));
  }

  private async postBatch(): Promise<void> {
    try {
      await this.adapter.ready();
    } catch (error) {
      this.reportLost(this.waiting.length, `the client could not be initialised: ${reasonWithoutKey(error)}`);
      this.waiting = [];
    }
    const batch = this.waiting.splice(0, BATCH);
    try {
      for (const event of batch) {
        this.adapter.log(event);
        this.posted += 1;
      }
    } catch (error) {
      // It was not initialised, or was shut down.
      this.reportLost(batch.length - this.posted, reasonWithoutKey(error));
    }
    try {
      // A little longer for the SDK, so that it is surely we who see that it was late.
      const post = (): Promise<void> => this.adapter.flush(POST_TIMEOUT_MS + 100);
      const isAnswered = this.posted === 0 || (await within(POST_TIMEOUT_MS, post));
      if (!isAnswered) throw new Error(`no answer within ${POST_TIMEOUT_MS} ms`);
    } catch (error) {
      this.reportLost(this.posted, reasonWithoutKey(error));
    } finally {
      this.posted = 0;
    }
  }

  private addRequest(record: RequestRecord, events: StatsigEvent[]): void {
    this.latency.add(record);
    if (this.rollup !== null) this.rollup.add(record, this.pod);
    else if (this.options.sampleRate === 1 || Math.random() < this.options.sampleRate) {
      events.push(requestEvent(record, this.pod, this.options.sampleRate));
    }
  }

  private intervalEvents(): StatsigEvent[] {
    this.intervalStartedMs = performance.now();
    const at = Date.now();
    const latency = this.latency.take(this.pod, at);
    const requests = this.rollup?.take(this.pod, at) ?? [];
    return latency === null ? requests : [latency, ...requests];
  }

  private reportLost(events: number, reason: string): void {
    if (events === 0) return;
    const cause = `sink "statsig" could not deliver events: ${reason}`;
    this.host?.report?.(cause, `${cause} (${events} now). Requests are not affected.`, events);
  }
}
