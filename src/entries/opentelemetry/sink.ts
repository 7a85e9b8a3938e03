import type { Histogram, Meter, MeterProvider } from '@opentelemetry/api';
import { object, optional, value } from '../../core/option.js';
import { optionalPeer } from '../../core/optional-peer.js';
import type { PerfRecord, SpanRef } from '../../core/record.js';
import type { PerfSink, PerfSinkHost } from '../../core/sink.js';
import { BlockTotals } from '../metrics/block-totals.js';
import { REQUEST_BOUNDS_SECONDS, REQUEST_DURATION } from '../metrics/request-duration.js';
import { SeriesCap } from '../metrics/series-cap.js';
import { observe } from './instruments.js';
import { RequestAttributes } from './request-attributes.js';

type Api = typeof import('@opentelemetry/api');

export interface OpenTelemetrySinkOptions {
  /**
   * Where the instruments are made. When it has `forceFlush()`, as the SDK's has, closing the application exports the
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
 * whatever SDK and exporter the application has. While a span is active, requests and blocks carry its trace and span ids.
 * @throws PERF_ERR_OPTION; the application's start throws PERF_ERR_MISSING_PEER without `@opentelemetry/api`
 */
export function openTelemetrySink(options: OpenTelemetrySinkOptions = {}): PerfSink {
  return new OpenTelemetrySink(table.read(options, 'openTelemetrySink').meterProvider);
}

class OpenTelemetrySink implements PerfSink {
  readonly name = 'opentelemetry';
  private readonly cap = new SeriesCap();
  private readonly blocks = new BlockTotals(this.cap);
  private readonly attributes = new RequestAttributes(this.cap);
  private provider: MeterProvider | null = null;
  private duration: Histogram | null = null;
  private unobserve: (() => void) | null = null;

  constructor(private readonly given: MeterProvider | null) {}

  async start(host: PerfSinkHost): Promise<void> {
    const api = await optionalPeer('@opentelemetry/api', 'openTelemetrySink()', () => import('@opentelemetry/api'));
    const provider = this.given ?? api.metrics.getMeterProvider();
    const meter = provider.getMeter('nestjs-perf');
    if (this.given === null && isNoop(meter, api)) throw new Error(NO_PROVIDER);
    this.provider = provider;
    this.duration = meter.createHistogram(REQUEST_DURATION.name, {
      unit: REQUEST_DURATION.unit,
      description: REQUEST_DURATION.help,
      advice: { explicitBucketBoundaries: [...REQUEST_BOUNDS_SECONDS] },
    });
    this.unobserve = observe(meter, () => ({ snapshot: host.snapshot(), blocks: this.blocks }));
    host.activeSpan?.(() => activeSpan(api));
  }

  publish(records: readonly PerfRecord[]): void {
    for (const record of records) {
      if (record.kind === 'block') this.blocks.add(record);
      else if (record.kind === 'request' && record.outcome === 'completed') {
        this.duration?.record(record.durationMs / 1_000, this.attributes.of(record));
      }
    }
  }

  async flush(deadlineMs: number): Promise<void> {
    const { provider } = this;
    if (provider !== null && canFlush(provider)) await provider.forceFlush({ timeoutMillis: deadlineMs });
  }

  /** The provider is the application's, so it is not shut down. */
  async close(): Promise<void> {
    this.unobserve?.();
    this.unobserve = null;
  }
}

const NO_PROVIDER =
  'no meter provider is registered, so every figure would be thrown away. Register the SDK before the application starts ' +
  '(for example `node --import ./instrumentation.js`), or pass `meterProvider`';

/** The API answers with a meter that does nothing while no SDK is registered. */
const isNoop = (meter: Meter, api: Api): boolean => meter.constructor === api.createNoopMeter().constructor;

function activeSpan(api: Api): SpanRef | null {
  const context = api.trace.getActiveSpan()?.spanContext();
  return context !== undefined && api.isSpanContextValid(context) ? context : null;
}

interface Flushable {
  forceFlush(options: { timeoutMillis: number }): Promise<void>;
}

const canFlush = (provider: MeterProvider): provider is MeterProvider & Flushable =>
  typeof (provider as Partial<Flushable>).forceFlush === 'function';
