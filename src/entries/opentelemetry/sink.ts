import type { Attributes as OtelAttributes, Histogram, Meter, MeterProvider } from '@opentelemetry/api';
import { object, optional, value } from '../../core/option.js';
import { optionalPeer } from '../../core/optional-peer.js';
import type { PerfRecord } from '../../core/record.js';
import { RunningApplications } from '../../core/running-applications.js';
import type { PerfSink, PerfSinkHost } from '../../core/sink.js';
import { BlockTotals } from '../metrics/block-totals.js';
import {
  DEFAULT_BOUNDS_SECONDS,
  DURATIONS,
  SeriesIndex,
  type Duration,
  type Measurement,
} from '../metrics/durations.js';
import { SeriesCap } from '../metrics/series-cap.js';
import { activeSpan, type Api } from './active-span.js';
import { observe, otelAttributes } from './instruments.js';

export interface OpenTelemetrySinkOptions {
  /**
   * Makes the instruments. When it has `forceFlush()`, as the SDK's has, closing the application exports the
   * last interval.
   * @default the global provider at the time the application starts
   */
  meterProvider?: MeterProvider;
}

const table = object({
  meterProvider: optional(
    value<MeterProvider>(
      'a MeterProvider',
      (given) => typeof (given as Partial<MeterProvider> | null)?.getMeter === 'function',
    ),
  ),
});

/**
 * Gives requests, event loop, container, deferred work and compression to OpenTelemetry through `@opentelemetry/api`,
 * whatever SDK and exporter the application has. While a span is active, requests and blocks carry its trace and span ids,
 * also where there is no meter provider.
 * @throws PERF_ERR_OPTION; the application's start throws PERF_ERR_MISSING_PEER without `@opentelemetry/api`
 */
export function openTelemetrySink(options: OpenTelemetrySinkOptions = {}): PerfSink {
  return new OpenTelemetrySink(table.read(options, 'openTelemetrySink').meterProvider);
}

class OpenTelemetrySink implements PerfSink {
  readonly name = 'opentelemetry';
  private readonly cap = new SeriesCap();
  private readonly blocks = new BlockTotals(this.cap);
  private readonly series = new SeriesIndex<OtelAttributes>(this.cap, { toLabels: otelAttributes });
  private provider: MeterProvider | null = null;
  private readonly histograms = new Map<Duration, Histogram>();
  private readonly unobserve = new RunningApplications<() => void>();

  constructor(private readonly given: MeterProvider | null) {}

  async start(host: PerfSinkHost): Promise<void> {
    const api = await optionalPeer('@opentelemetry/api', 'openTelemetrySink()', () => import('@opentelemetry/api'));
    host.activeSpan?.(() => activeSpan(api));
    const provider = this.given ?? api.metrics.getMeterProvider();
    const meter = provider.getMeter('nestjs-perf');
    if (this.given !== null || !isNoop(meter, api)) this.measure(provider, meter, host);
    else if (!hasTracer(api)) host.report?.('no OpenTelemetry SDK', NO_SDK);
  }

  private measure(provider: MeterProvider, meter: Meter, host: PerfSinkHost): void {
    this.provider = provider;
    for (const duration of DURATIONS) {
      const histogram = meter.createHistogram(duration.name, {
        unit: 's',
        description: duration.help,
        advice: { explicitBucketBoundaries: [...DEFAULT_BOUNDS_SECONDS] },
      });
      this.histograms.set(duration, histogram);
    }
    const { blocks, cap } = this;
    this.unobserve.add(
      host,
      observe(meter, () => ({ snapshot: host.snapshot(), blocks, cap })),
    );
  }

  publish(records: readonly PerfRecord[]): void {
    for (const record of records) {
      if (record.kind === 'block') this.blocks.add(record);
      else if (record.kind === 'work') {
        const { type, name, outcome, durationMs } = record;
        const status = outcome === 'failed' ? 500 : 200;
        this.count({ method: type.toUpperCase(), route: name, handler: name, status }, durationMs);
      } else if (record.kind === 'request') {
        if (record.outcome === 'completed') this.count(record, record.durationMs);
        const { firstByteMs, method, route, handler } = record;
        if (firstByteMs !== null) this.count({ method, route, handler, status: null }, firstByteMs);
      }
    }
  }

  private count(measurement: Measurement, ms: number): void {
    const { duration, labels } = this.series.of(measurement);
    this.histograms.get(duration)?.record(ms / 1_000, labels);
  }

  async flush(deadlineMs: number): Promise<void> {
    const { provider } = this;
    if (provider !== null && canFlush(provider)) await provider.forceFlush({ timeoutMillis: deadlineMs });
  }

  /** The provider is the application's, so it is not shut down. */
  async close(host?: PerfSinkHost): Promise<void> {
    this.unobserve.take(host)?.();
  }
}

const NO_SDK =
  'sink "opentelemetry" found neither a meter nor a tracer provider: no metric is exported and no record has a trace id. Register the ' +
  'SDK before the application starts (for example `node --import ./instrumentation.js`), or pass `meterProvider`.';

/** The API answers with a meter that does nothing while no SDK is registered. */
const isNoop = (meter: Meter, api: Api): boolean => meter.constructor === api.createNoopMeter().constructor;

/** The API's own provider only passes on to the one that is registered. */
function hasTracer(api: Api): boolean {
  const provider = api.trace.getTracerProvider();
  return !(provider instanceof api.ProxyTracerProvider) || provider.getDelegateTracer('nestjs-perf') !== undefined;
}

interface Flushable {
  forceFlush(options: { timeoutMillis: number }): Promise<void>;
}

const canFlush = (provider: MeterProvider): provider is MeterProvider & Flushable =>
  typeof (provider as Partial<Flushable>).forceFlush === 'function';
