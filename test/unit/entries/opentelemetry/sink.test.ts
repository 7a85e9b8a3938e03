import { type Context, context, metrics, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { DataPoint, Histogram, MetricData } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { recorderOf } from '../../../fixtures/recorder.js';
import { OncePerCause } from '../../../../src/core/reporter.js';
import { openTelemetrySink } from '../../../../src/entries/opentelemetry.js';
import { blockRecord, requestRecord, resourceSample } from '../../../fixtures/records.js';
import { FakeHost, routeSnapshot } from '../../../fixtures/sink-host.js';
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

  it('observes event loop, container, deferred work and compression under their conventional names and units', async () => {
    const host = new FakeHost();
    Object.assign(host.snapshots, {
      routes: [routeSnapshot({ inFlight: 2 })],
      eventLoop: { utilization: 0.4, delayMs: { p50: 11, p99: 25, max: 130 }, blocks: 0, blockedMs: 0 },
      resources: resourceSample(),
      compression: { responses: 1, compressed: 1, cacheHits: 0, bytesIn: 900, bytesOut: 100, cacheBytes: 0 },
    });
    const { sink } = await started(host);
    await sink.publish([
      blockRecord({ durationMs: 500 }),
      blockRecord({ request: null, cause: 'gc', durationMs: 250 }),
    ]);
    const all = await otel.collect();
    const units = Object.fromEntries([...all].map(([name, { descriptor }]) => [name, descriptor.unit]));
    expect(units).toEqual({
      'nodejs.eventloop.utilization': '1',
      'nodejs.eventloop.delay.p50': 's',
      'nodejs.eventloop.delay.p99': 's',
      'nodejs.eventloop.delay.max': 's',
      'perf.eventloop.blocks': '{block}',
      'perf.eventloop.blocked': 's',
      'container.cpu.time': 's',
      'container.cpu.limit.utilization': '1',
      'container.cpu.periods': '{period}',
      'container.cpu.throttled_periods': '{period}',
      'container.memory.working_set': 'By',
      'container.memory.limit': 'By',
      'http.server.active_requests': '{request}',
      'perf.http.aborted': '{request}',
      'perf.compression': 'By',
    });
    expect(pointsOf(all, 'nodejs.eventloop.delay.p99')).toEqual([[0.025, {}]]);
    expect(pointsOf(all, 'container.cpu.time')).toEqual([[42.5, {}]]);
    expect(pointsOf(all, 'http.server.active_requests')).toEqual([[2, { 'http.request.method': 'GET' }]]);
    expect(pointsOf(all, 'perf.eventloop.blocked')).toEqual([
      [0.5, { 'http.route': '/users/:id', cause: 'javascript' }],
      [0.25, { cause: 'gc' }],
    ]);
    expect(pointsOf(all, 'perf.compression')).toEqual([
      [900, { direction: 'in' }],
      [100, { direction: 'out' }],
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

  it('keeps routes beyond the cap in one series', async () => {
    const { sink } = await started();
    await sink.publish(Array.from({ length: 1_200 }, (_, i) => requestRecord({ route: `/made/${i}` })));
    const points = (await otel.collect()).get('http.server.request.duration')!.dataPoints as DataPoint<Histogram>[];
    expect(points).toHaveLength(1_001);
    expect(points.find(({ attributes }) => attributes['http.route'] === '_OTHER')?.value.count).toBe(200);
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

  it('says so when none is registered, and the application starts without it', async () => {
    const warnings: string[] = [];
    const reporter = { log: () => {}, warn: (text: string) => void warnings.push(text), error: () => {} };
    const recorder = recorderOf([openTelemetrySink()], new OncePerCause(reporter, () => 0));
    await recorder.start(new FakeHost(), 1_000);
    recorder.push(requestRecord());
    await recorder.close(1_000);
    expect(warnings).toEqual([
      'sink "opentelemetry" failed in start(): no meter provider is registered, so every figure would be thrown away. Register the SDK before the ' +
        'application starts (for example `node --import ./instrumentation.js`), or pass `meterProvider`. Requests and other sinks are not affected.',
    ]);
  });
});

describe('openTelemetrySink and traces', () => {
  beforeEach(() => context.setGlobalContextManager(new AlsContextManager()));
  afterEach(() => context.disable());

  it('tells trace and span of the active span, and null where there is none', async () => {
    const { host } = await started();
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const inSpan = (id: string): Context =>
      trace.setSpan(ROOT_CONTEXT, trace.wrapSpanContext({ traceId: id, spanId: 'b7ad6b7169203331', traceFlags: 1 }));
    const current = () => host.currentSpan?.();
    expect(context.with(inSpan(traceId), current)).toMatchObject({ traceId, spanId: 'b7ad6b7169203331' });
    expect(current()).toBeNull();
    expect(context.with(inSpan('0'.repeat(32)), current)).toBeNull();
  });
});
