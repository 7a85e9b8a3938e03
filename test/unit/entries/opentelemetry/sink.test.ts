import { type Context, context, metrics, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { DataPoint, Histogram, MetricData } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { METRICS } from '../../../../src/entries/metrics/catalogue.js';
import { openTelemetrySink } from '../../../../src/entries/opentelemetry.js';
import { blockRecord, requestRecord, workRecord } from '../../../fixtures/records.js';
import { everything, FakeHost } from '../../../fixtures/sink-host.js';
import { AlsContextManager, OtelLoopback } from '../../../fixtures/otel.js';

let otel: OtelLoopback;
beforeEach(() => {
  otel = new OtelLoopback();
});
afterEach(() => otel.stop());

const started = async (host = new FakeHost()) => {
  const sink = openTelemetrySink({ meterProvider: otel.provider });
  await sink.start?.(host);
  return { sink, host };
};

const pointsOf = (all: Map<string, MetricData>, name: string): [unknown, unknown][] =>
  (all.get(name)?.dataPoints ?? []).map(({ value, attributes }) => [value, attributes]);

describe('openTelemetrySink on the real metrics SDK', () => {
  it('records completed requests in seconds, by method, route and status', async () => {
    const { sink } = await started();
    await sink.publish([
      requestRecord({ durationMs: 4 }),
      requestRecord({ durationMs: 30 }),
      requestRecord({ status: 503, durationMs: 2_000 }),
      requestRecord({ route: '', status: 404, durationMs: 1 }),
      requestRecord({ outcome: 'aborted', status: 499 }),
    ]);
    const metric = (await otel.collect()).get('http.server.request.duration');
    expect(metric?.descriptor).toMatchObject({ unit: 's', description: expect.stringContaining('HTTP requests') });
    const points = (metric?.dataPoints ?? []) as DataPoint<Histogram>[];
    expect(points.map(({ attributes, value }) => [attributes, value.count, value.sum])).toEqual([
      [{ 'http.request.method': 'GET', 'http.route': '/users/:id', 'http.response.status_code': 200 }, 2, 0.034],
      [
        {
          'http.request.method': 'GET',
          'http.route': '/users/:id',
          'http.response.status_code': 503,
          'error.type': '503',
        },
        1,
        2,
      ],
      [{ 'http.request.method': 'GET', 'http.response.status_code': 404 }, 1, 0.001],
    ]);
    expect(points[0]!.value.buckets.boundaries).toEqual([
      0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
    ]);
    expect(points[0]!.value.buckets.counts.slice(0, 4)).toEqual([1, 0, 0, 1]);
  });

  it('gives no request a status that it did not have: a route with many of them is counted without', async () => {
    const { sink } = await started();
    const had = [200, 201, 202, 204, 301, 302, 304, 400];
    await sink.publish([...had, 404, 429, 503].map((status) => requestRecord({ status, durationMs: 1 })));
    const points = (await otel.collect()).get('http.server.request.duration')!.dataPoints as DataPoint<Histogram>[];
    const [statuses, errors] = ['http.response.status_code', 'error.type'].map((key) =>
      points.map(({ attributes }) => attributes[key]).filter((value) => value !== undefined),
    );
    expect(statuses).toEqual(had);
    expect(errors).toEqual(['5xx']);
    expect(points.reduce((sum, { value }) => sum + value.count, 0)).toBe(11);
  });

  it('records measured work as durations of handlers, and not among requests', async () => {
    const { sink } = await started();
    await sink.publish([
      workRecord({ type: 'message', name: 'Sums.sum', durationMs: 40 }),
      workRecord({ type: 'socket', name: 'Ticks.tick', outcome: 'failed', durationMs: 2 }),
    ]);
    const all = await otel.collect();
    expect(all.has('http.server.request.duration')).toBe(false);
    const points = all.get('perf.handler.duration')!.dataPoints as DataPoint<Histogram>[];
    expect(points.map(({ attributes, value }) => [attributes, value.sum])).toEqual([
      [{ kind: 'message', handler: 'Sums.sum', status: 200 }, 0.04],
      [{ kind: 'socket', handler: 'Ticks.tick', status: 500, 'error.type': '500' }, 0.002],
    ]);
  });

  it('observes every metric of the catalogue in its unit', async () => {
    const { sink } = await started(everything());
    await sink.publish([
      blockRecord({ durationMs: 500 }),
      blockRecord({ request: null, cause: 'gc', durationMs: 250 }),
    ]);
    const all = await otel.collect();
    const units = Object.fromEntries([...all].map(([name, { descriptor }]) => [name, descriptor.unit]));
    expect(units).toEqual(Object.fromEntries(METRICS.map(({ name, unit }) => [name, unit])));
    expect(pointsOf(all, 'nodejs.eventloop.delay.p99')).toEqual([[0.025, {}]]);
    expect(pointsOf(all, 'container.cpu.time')).toEqual([[42.5, {}]]);
    expect(pointsOf(all, 'process.cpu.time')).toEqual([[12, {}]]);
    expect(pointsOf(all, 'http.server.active_requests')).toContainEqual([3, { 'http.request.method': 'GET' }]);
    expect(pointsOf(all, 'perf.http.requests_over')).toEqual([
      [8, { 'http.request.method': 'GET', 'http.route': '/users/:id', le_ms: '1000' }],
      [4, { 'http.request.method': 'GET', 'http.route': '/users/:id', le_ms: '2000' }],
      [5, { 'http.request.method': '_OTHER', le_ms: '1000' }],
      [5, { 'http.request.method': '_OTHER', le_ms: '2000' }],
    ]);
    expect(pointsOf(all, 'perf.eventloop.blocked')).toEqual([
      [0.5, { 'http.route': '/users/:id', cause: 'javascript' }],
      [0.25, { cause: 'gc' }],
    ]);
    expect(pointsOf(all, 'perf.compression')).toEqual([
      [9_000, { direction: 'in' }],
      [1_000, { direction: 'out' }],
    ]);
  });

  it('takes one snapshot for an export', async () => {
    const { host } = await started();
    await otel.collect();
    expect(host.snapshotsTaken).toBe(1);
  });

  it('exports the last interval when it is flushed, and observes nothing once it is closed', async () => {
    const { sink, host } = await started();
    await sink.publish([requestRecord()]);
    await sink.flush?.(20_000);
    expect(otel.requestCount()).toBe(1);
    await sink.close?.();
    const before = host.snapshotsTaken;
    await otel.collect();
    expect(host.snapshotsTaken).toBe(before);
  });

  it('observes each of two applications that share it, until that one closes', async () => {
    const { sink, host } = await started(everything());
    const second = everything();
    await sink.start?.(second);
    await sink.close?.();
    const [first, others] = [host.snapshotsTaken, second.snapshotsTaken];
    await otel.collect();
    expect([host.snapshotsTaken, second.snapshotsTaken]).toEqual([first, others + 1]);
    await sink.close?.();
    await otel.collect();
    expect([host.snapshotsTaken, second.snapshotsTaken]).toEqual([first, others + 1]);
  });

  it('keeps routes beyond the cap in one series', async () => {
    const { sink } = await started();
    await sink.publish(Array.from({ length: 1_200 }, (_, i) => requestRecord({ route: `/made/${i}` })));
    const points = (await otel.collect()).get('http.server.request.duration')!.dataPoints as DataPoint<Histogram>[];
    expect(points).toHaveLength(1_001);
    expect(points.find(({ attributes }) => attributes['http.route'] === 'other')?.value.count).toBe(200);
  });

  it('refuses what is no provider', () => {
    expect(() => openTelemetrySink({ meterProvider: {} as never })).toThrow(
      'PERF_ERR_OPTION: `openTelemetrySink.meterProvider` must be a MeterProvider, got an object.',
    );
  });
});

describe('openTelemetrySink on the global provider', () => {
  afterEach(() => metrics.disable());

  it('uses the provider that is registered', async () => {
    metrics.setGlobalMeterProvider(otel.provider);
    const sink = openTelemetrySink();
    await sink.start?.(new FakeHost());
    await sink.publish([requestRecord()]);
    await otel.collect();
    expect(otel.requestCount()).toBe(1);
    await sink.close?.();
  });

  it('says so when no SDK is registered, and the application starts without it', async () => {
    const sink = openTelemetrySink();
    const host = new FakeHost();
    await sink.start?.(host);
    await sink.publish([requestRecord(), blockRecord()]);
    await sink.flush?.(1_000);
    await sink.close?.();
    expect(host.reports).toEqual([
      'sink "opentelemetry" found neither a meter nor a tracer provider: no metric is exported and no record has a trace id. Register the ' +
        'SDK before the application starts (for example `node --import ./instrumentation.js`), or pass `meterProvider`.',
    ]);
  });
});

describe('openTelemetrySink and traces', () => {
  beforeEach(() => context.setGlobalContextManager(new AlsContextManager()));
  afterEach(() => {
    context.disable();
    trace.disable();
  });
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const inSpan = (id: string): Context =>
    trace.setSpan(ROOT_CONTEXT, trace.wrapSpanContext({ traceId: id, spanId: 'b7ad6b7169203331', traceFlags: 1 }));

  it('tells trace and span of the active span, and null where there is none', async () => {
    const { host } = await started();
    const current = () => host.currentSpan?.();
    expect(context.with(inSpan(traceId), current)).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
    expect(current()).toBeNull();
    expect(context.with(inSpan('0'.repeat(32)), current)).toBeNull();
  });

  it('does so without a meter provider, in silence where traces are all that there is', async () => {
    const tracer = trace.getTracer('an SDK of traces');
    trace.setGlobalTracerProvider({ getTracer: () => tracer });
    const host = new FakeHost();
    const sink = openTelemetrySink();
    await sink.start?.(host);
    expect(context.with(inSpan(traceId), () => host.currentSpan?.())).toMatchObject({ traceId });
    await sink.publish([requestRecord()]);
    await sink.flush?.(1_000);
    await sink.close?.();
    expect(host.reports).toEqual([]);
  });
});
