import { spawnSync } from 'node:child_process';
import { Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { prometheusSink, type PrometheusSinkOptions } from '../../../../src/entries/prometheus.js';
import { blockRecord, requestRecord, resourceSample } from '../../../fixtures/records.js';
import { everything, FakeHost } from '../../../fixtures/sink-host.js';
import { parseExposition, samplesOf, valueOf, type Family } from '../../../fixtures/exposition.js';

const started = async (options: PrometheusSinkOptions = {}, host = new FakeHost()) => {
  const sink = prometheusSink(options);
  await sink.start?.(host);
  const scrape = async (): Promise<Map<string, Family>> => parseExposition((await host.ask('/metrics')).body);
  return { sink, host, scrape };
};

describe('prometheusSink', () => {
  it('exposes the request histogram in seconds, in the buckets of the HTTP conventions', async () => {
    const { scrape } = await started({}, everything());
    const families = await scrape();
    const name = 'http_server_request_duration_seconds';
    expect(families.get(name)?.type).toBe('histogram');
    const labels = { http_request_method: 'GET', http_route: '/users/:id', http_response_status_code: '200' };
    const bucket = (le: string): number => valueOf(families, `${name}_bucket`, { ...labels, le });
    expect(['0.005', '0.025', '0.05', '0.75', '10', '+Inf'].map(bucket)).toEqual([1, 1, 3, 4, 4, 5]);
    expect(samplesOf(families, `${name}_bucket`, labels)).toHaveLength(15);
    expect(valueOf(families, `${name}_sum`, labels)).toBeCloseTo(20.764, 9);
    expect(valueOf(families, `${name}_count`, labels)).toBe(5);
    expect(valueOf(families, `${name}_count`, { http_route: '', http_response_status_code: '404' })).toBe(1);
  });

  it('exposes measured work by kind and handler, and never among HTTP requests', async () => {
    const { scrape } = await started({}, everything());
    const families = await scrape();
    const name = 'perf_handler_duration_seconds';
    expect(families.get(name)?.type).toBe('histogram');
    expect(samplesOf(families, `${name}_count`).map(({ labels, value }) => [labels, value])).toEqual([
      [{ kind: 'message', handler: 'UsersController.findOne', status: '200' }, 2],
      [{ kind: 'graphql', handler: 'UsersController.findOne', status: '500' }, 1],
    ]);
    expect(valueOf(families, `${name}_sum`, { kind: 'message' })).toBeCloseTo(0.043, 9);
    expect(valueOf(families, `${name}_bucket`, { kind: 'message', le: '0.005' })).toBe(1);
    const http = [...families.values()].flatMap(({ samples }) => samples.map(({ labels }) => labels));
    const methods = http.map(({ http_request_method }) => http_request_method).filter((method) => method !== undefined);
    expect([...new Set(methods)].sort()).toEqual(['GET', 'POST', '_OTHER']);
  });

  it('counts requests over each of `latency.overMs` by route, versions of one pattern together', async () => {
    const { scrape } = await started({}, everything());
    const over = samplesOf(await scrape(), 'perf_http_requests_over_total', { le_ms: '1000' });
    const byRoute = over.map(({ labels, value }) => [labels['http_request_method'], labels['http_route'], value]);
    expect(byRoute).toEqual([
      ['GET', '/users/:id', 8],
      ['_OTHER', '', 5],
    ]);
    expect(valueOf(await scrape(), 'perf_http_requests_over_total', { http_route: '', le_ms: '2000' })).toBe(5);
  });

  it('exposes the event loop, the container, the process, deferred work and compression', async () => {
    const { scrape, sink } = await started({}, everything());
    await sink.publish([blockRecord(), blockRecord({ durationMs: 80 }), blockRecord({ request: null, cause: 'gc' })]);
    const families = await scrape();
    const value = (name: string, labels?: Record<string, string>): number => valueOf(families, name, labels);
    expect(value('nodejs_eventloop_utilization_ratio')).toBe(0.4);
    expect(['p50', 'p99', 'max'].map((stat) => value('nodejs_eventloop_delay_seconds', { stat }))).toEqual([
      0.011, 0.025, 0.13,
    ]);
    expect(value('perf_eventloop_blocks_total', { http_route: '/users/:id', cause: 'javascript' })).toBe(2);
    expect(value('perf_eventloop_blocked_seconds_total', { http_route: '/users/:id', cause: 'javascript' })).toBe(0.2);
    expect(value('perf_eventloop_blocks_total', { http_route: '', cause: 'gc' })).toBe(1);
    expect(value('container_cpu_time_seconds_total')).toBe(42.5);
    expect(value('container_cpu_limit_utilization_ratio')).toBe(0.25);
    expect(value('container_cpu_periods_total')).toBe(1_000);
    expect(value('container_cpu_throttled_periods_total')).toBe(50);
    expect(value('container_memory_working_set_bytes')).toBe(250_000);
    expect(value('container_memory_limit_bytes')).toBe(1_000_000);
    expect(value('process_cpu_seconds_total')).toBe(12);
    expect(value('process_resident_memory_bytes')).toBe(300_000);
    expect(value('nodejs_heap_size_used_bytes')).toBe(90_000);
    expect(value('nodejs_heap_size_limit_bytes')).toBe(500_000);
    expect(value('http_server_active_requests', { http_request_method: 'GET' })).toBe(3);
    expect(value('http_server_active_requests', { http_request_method: 'POST' })).toBe(4);
    expect(value('perf_http_aborted_total', { http_request_method: 'GET' })).toBe(3);
    expect(['completed', 'failed', 'dropped'].map((outcome) => value('perf_deferred_total', { outcome }))).toEqual([
      50, 3, 1,
    ]);
    expect(value('perf_deferred_pending')).toBe(5);
    const offloaded = ['done', 'failed', 'timed_out', 'refused'].map((outcome) =>
      value('perf_offload_total', { outcome }),
    );
    expect([...offloaded, value('perf_offload_pending')]).toEqual([70, 12, 13, 14, 11]);
    expect(value('perf_compression_bytes_total', { direction: 'in' })).toBe(9_000);
    expect(value('perf_compression_bytes_total', { direction: 'out' })).toBe(1_000);
  });

  it('says counter of what only grows, and gauge of the rest', async () => {
    const { scrape } = await started({}, everything());
    for (const [name, { type, help }] of await scrape()) {
      expect(help, name).not.toBe('');
      expect(type, name).toBe(
        name.endsWith('_total') ? 'counter' : /(?:duration|first_byte)_seconds$/.test(name) ? 'histogram' : 'gauge',
      );
    }
  });

  const promtool = spawnSync('promtool', ['--version']);
  const hasPromtool = promtool.error === undefined && promtool.status === 0;
  it.skipIf(!hasPromtool)(
    `passes Prometheus's own linter${hasPromtool ? '' : ' (skipped: no promtool on PATH; Debian has it in the package prometheus)'}`,
    async () => {
      const { host, sink } = await started({}, everything());
      await sink.publish([blockRecord()]);
      const input = (await host.ask('/metrics')).body;
      const lint = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
      expect(lint.stdout + lint.stderr).toBe('');
      expect(lint.status).toBe(0);
    },
  );

  it('leaves out what is not known or switched off', async () => {
    const host = new FakeHost();
    const sample = resourceSample();
    host.snapshots.resources = {
      ...sample,
      limits: { ...sample.limits, memoryBytes: null },
      cpu: { ...sample.cpu, window: null, periods: null },
    };
    const { scrape } = await started({}, host);
    const families = await scrape();
    for (const name of [
      'container_memory_limit_bytes',
      'container_cpu_limit_utilization_ratio',
      'container_cpu_periods_total',
      'nodejs_eventloop_utilization_ratio',
      'perf_deferred_pending',
      'perf_offload_total',
    ]) {
      expect(samplesOf(families, name), name).toEqual([]);
    }
    expect(valueOf(families, 'container_memory_working_set_bytes')).toBe(250_000);
  });

  it('adds up series that share all labels, such as two versions of one pattern', async () => {
    const host = new FakeHost();
    const twice = new FakeHost().requests('GET', '/v', 200, [1, 2]).histograms();
    host.histograms = () => [...twice, ...twice];
    const { scrape } = await started({}, host);
    expect(valueOf(await scrape(), 'http_server_request_duration_seconds_count')).toBe(4);
  });

  it('puts routes beyond the cap into one series, and never takes one back', async () => {
    const host = new FakeHost();
    const { scrape } = await started({ buckets: [1] }, host);
    const name = 'http_server_request_duration_seconds_count';
    for (let i = 0; i < 1_200; i++) host.requests('GET', `/made/${i}`, 200, [1]);
    const before = await scrape();
    expect(samplesOf(before, name)).toHaveLength(1_001);
    expect(valueOf(before, name, { http_route: 'other' })).toBe(200);
    host.requests('GET', '/made/0', 200, [1]).requests('GET', '/made/1199', 200, [1]);
    const after = await scrape();
    expect(valueOf(after, name, { http_route: '/made/0' })).toBe(2);
    expect(valueOf(after, name, { http_route: 'other' })).toBe(201);
  });

  const statuses = process.env['PERF_LONG'] === undefined ? 20 : 800;
  it(`stays under 1 MB with 60 routes of ${statuses} statuses, and loses no request`, async () => {
    const { scrape, host } = await started();
    for (let route = 0; route < 60; route++)
      for (let status = 200; status < 1_000; status += 800 / statuses)
        host.requests('GET', `/proxy/${route}/:id`, status, [1]);
    expect((await host.ask('/metrics')).body.length).toBeLessThan(1_000_000);
    const counts = samplesOf(await scrape(), 'http_server_request_duration_seconds_count');
    expect(counts.reduce((sum, { value }) => sum + value, 0)).toBe(60 * statuses);
    expect(new Set(counts.map(({ labels }) => labels['http_response_status_code']))).toEqual(
      new Set(['2xx', '3xx', '4xx', '5xx']),
    );
  });

  it('bounds the series by `maxRoutes`, and counts the rest as `other`', async () => {
    const { scrape, host } = await started({ maxRoutes: 3 });
    for (let i = 0; i < 10; i++) host.requests('GET', `/route/${i}`, 200, [1]);
    const counts = samplesOf(await scrape(), 'http_server_request_duration_seconds_count');
    expect(counts.map(({ labels, value }) => [labels['http_route'], value])).toEqual([
      ['/route/0', 1],
      ['/route/1', 1],
      ['/route/2', 1],
      ['other', 7],
    ]);
  });

  it("labels classes with `statusLabel: 'class'`", async () => {
    const host = new FakeHost()
      .requests('GET', '/a', 200, [1])
      .requests('GET', '/a', 204, [1])
      .requests('GET', '/a', 503, [1]);
    const { scrape } = await started({ statusLabel: 'class' }, host);
    const counts = samplesOf(await scrape(), 'http_server_request_duration_seconds_count');
    expect(counts.map(({ labels, value }) => [labels['http_response_status_code'], value])).toEqual([
      ['2xx', 2],
      ['5xx', 1],
    ]);
  });

  it('writes the trace of the slowest request of a bucket with `exemplars`, a new one after each scrape', async () => {
    const host = new FakeHost().requests('GET', '/a', 200, [20, 40, 60]);
    const { sink } = await started({ exemplars: true, buckets: [0.05, 0.1] }, host);
    expect([sink.requests, prometheusSink().requests]).toEqual(['all', 'none']);
    const request = (durationMs: number, traceId?: string) =>
      requestRecord({
        method: 'GET',
        route: '/a',
        status: 200,
        startedAt: 1_000,
        durationMs,
        ...(traceId === undefined ? {} : { traceId, spanId: 's' }),
      });
    const lines = async (): Promise<string[]> => {
      const { body, type } = await host.ask('/metrics');
      expect(type).toContain('application/openmetrics-text');
      return body.split('\n').filter((line) => line.startsWith('http_server_request_duration_seconds_bucket'));
    };
    await sink.publish([request(20, 'a'), request(40, 'b'), request(30, 'c'), request(60, 'd'), request(45)]);
    const [first, second, infinite] = await lines();
    expect(first).toMatch(/ 2 # \{trace_id="b",span_id="s"\} 0\.04 1\.04$/);
    expect(second).toMatch(/ 3 # \{trace_id="d",span_id="s"\} 0\.06 1\.06$/);
    expect(infinite).toMatch(/le="\+Inf".* 3$/);
    await sink.publish([request(10, 'e')]);
    expect((await lines())[0]).toMatch(/trace_id="e"/);
  });

  it('refuses `exemplars` with a registry that does not write OpenMetrics', () => {
    expect(() => prometheusSink({ exemplars: true, registry: new Registry() })).toThrow(
      'PERF_ERR_OPTION: `prometheusSink.registry` must be a registry that writes OpenMetrics, for `exemplars`: `registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)`, got',
    );
  });

  it('keeps routes with quotes, backslashes and line feeds parseable', async () => {
    const route = '/a"b\\c\nd{e="f"}';
    const { scrape } = await started({}, new FakeHost().requests('GET', route, 200, [1]));
    expect(valueOf(await scrape(), 'http_server_request_duration_seconds_count', { http_route: route })).toBe(1);
  });

  it('takes one snapshot for a scrape, and a new one for the next', async () => {
    const { host } = await started();
    await host.ask('/metrics');
    expect(host.snapshotsTaken).toBe(1);
    await host.ask('/metrics');
    expect(host.snapshotsTaken).toBe(2);
  });

  it('goes on for the applications that share it when another one closes, whichever was first', async () => {
    const first = everything();
    const { sink, scrape } = await started({}, first);
    await sink.start?.(everything());
    await sink.close?.();
    expect(samplesOf(await scrape(), 'http_server_request_duration_seconds_count')).not.toEqual([]);
  });

  it('answers 403 to whom `authorize` refuses, and fails closed when it throws', async () => {
    const authorize = async (request: unknown) => {
      if (request === 'broken') throw new Error('no session store');
      return request === 'prometheus' || (undefined as unknown as boolean);
    };
    const { host } = await started({ authorize });
    expect((await host.ask('/metrics', 'prometheus')).status).toBe(200);
    expect(await host.ask('/metrics', 'somebody')).toEqual({
      status: 403,
      type: 'text/plain; charset=utf-8',
      body: 'Forbidden\n',
    });
    expect(await host.ask('/metrics', 'broken')).toMatchObject({ status: 500, body: 'Internal Server Error\n' });
    expect(host.reports).toEqual([
      'the Prometheus endpoint failed: no session store. Its caller was answered with 500.',
    ]);
  });

  it('does nothing for a request record: the application has counted it', async () => {
    const { sink, scrape } = await started();
    await sink.publish([requestRecord()]);
    expect(samplesOf(await scrape(), 'http_server_request_duration_seconds_count')).toEqual([]);
  });
});
