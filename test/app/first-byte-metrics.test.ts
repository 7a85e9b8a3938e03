import { EventEmitter, once } from 'node:events';
import { get } from 'node:http';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { Controller, Get, Sse, StreamableFile } from '@nestjs/common';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { NEVER, startWith } from 'rxjs';
import { afterEach, describe, expect, it } from 'vitest';
import { openTelemetrySink } from '../../src/entries/opentelemetry.js';
import { prometheusSink } from '../../src/entries/prometheus.js';
import { PerfService, type RouteSnapshot } from '../../src/index.js';
import { adapterOf, adapters } from '../fixtures/app.js';
import { closeApps, listeningApp, recordsOf, type BuiltApp } from '../fixtures/build-app.js';
import { parseExposition, valueOf } from '../fixtures/exposition.js';
import { call } from '../fixtures/http-client.js';

const HELD_MS = 300;
const ends = new EventEmitter();

@Controller()
class StreamsController {
  /** Its end waits until the test has read its beginning. */
  @Get('export')
  export() {
    async function* parts() {
      yield 'head\n';
      await once(ends, 'end');
      yield 'tail\n';
    }
    return new StreamableFile(Readable.from(parts()));
  }
  @Sse('ticks')
  ticks() {
    return NEVER.pipe(startWith({ data: 'tick' }));
  }
  @Get('hang')
  hang() {
    ends.emit('hanging');
    return new Promise(() => {});
  }
}

afterEach(closeApps);

/** Reads the first chunk; the rest as `then` says. */
async function begin(url: string): Promise<{ leave: () => void; end: () => Promise<void> }> {
  const request = get(url, { agent: false });
  const [response] = (await once(request, 'response')) as [Readable];
  await once(response, 'data');
  return {
    leave: () => request.destroy(),
    end: async () => {
      response.resume();
      await once(response, 'end');
    },
  };
}
const rowOf = ({ app }: BuiltApp, route: string): RouteSnapshot =>
  app
    .get(PerfService)
    .snapshot()
    .routes.find((row) => row.route === route)!;

describe.each(adapters)('the time to the first byte on %s', (adapter) => {
  it('of streams is by route in the snapshot, Prometheus and OpenTelemetry, whether or not their clients stay', async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const provider = new MeterProvider({ readers: [reader] });
    const sinks = [prometheusSink(), openTelemetrySink({ meterProvider: provider })];
    const { url, ...built } = await listeningApp(adapterOf(adapter), {
      perf: { eventLoop: false, compression: false, sinks },
      metadata: { controllers: [StreamsController] },
    });
    const download = await begin(`${url}/export`);
    await delay(HELD_MS);
    ends.emit('end');
    await download.end();
    (await begin(`${url}/ticks`)).leave();
    const hanging = once(ends, 'hanging');
    const aborted = get(`${url}/hang`, { agent: false }).on('error', () => {});
    await hanging;
    aborted.destroy();
    const records = await recordsOf(built, 3);
    expect(records.map(({ route, outcome, firstByteMs }) => [route, outcome, firstByteMs === null])).toEqual([
      ['/export', 'completed', false],
      ['/ticks', 'aborted', false],
      ['/hang', 'aborted', true],
    ]);

    const { durationMs, firstByteMs } = rowOf(built, '/export');
    expect(firstByteMs!.p50).toBeGreaterThan(0);
    expect(durationMs.p50 - firstByteMs!.p99).toBeGreaterThan(0.9 * HELD_MS);
    expect(rowOf(built, '/ticks')).toMatchObject({ count: 1, aborted: 1, firstByteMs: { p50: expect.any(Number) } });
    expect(rowOf(built, '/hang').firstByteMs).toBeNull();

    const metrics = parseExposition((await call(`${url}/metrics`)).text);
    const name = 'perf_http_time_to_first_byte_seconds';
    for (const route of ['/export', '/ticks']) {
      const labels = { http_request_method: 'GET', http_route: route };
      expect(valueOf(metrics, `${name}_count`, labels)).toBe(1);
      expect(valueOf(metrics, `${name}_sum`, labels)).toBeGreaterThan(0);
    }
    expect(metrics.get(name)!.samples.some(({ labels }) => labels['http_route'] === '/hang')).toBe(false);

    await provider.forceFlush();
    const exported = exporter
      .getMetrics()
      .at(-1)!
      .scopeMetrics.flatMap(({ metrics: all }) => all)
      .find(({ descriptor }) => descriptor.name === 'perf.http.time_to_first_byte')!;
    const points = exported.dataPoints.map(({ attributes, value }) => [attributes, (value as { count: number }).count]);
    expect(exported.descriptor.unit).toBe('s');
    expect(points).toEqual([
      [{ 'http.request.method': 'GET', 'http.route': '/export' }, 1],
      [{ 'http.request.method': 'GET', 'http.route': '/ticks' }, 1],
    ]);
    await provider.shutdown();
  });
});
