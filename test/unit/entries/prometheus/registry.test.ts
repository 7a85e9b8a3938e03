import { AggregatorRegistry, collectDefaultMetrics, Counter, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { prometheusSink, type PrometheusSinkOptions } from '../../../../src/entries/prometheus.js';
import { parseExposition, samplesOf, valueOf } from '../../../fixtures/exposition.js';
import { everything, FakeHost } from '../../../fixtures/sink-host.js';

const started = async (options: PrometheusSinkOptions, host = everything()) => {
  const sink = prometheusSink(options);
  await sink.start?.(host);
  return { sink, host };
};

describe('the registry of prometheusSink', () => {
  it('has its own registry, so that applications do not see each other', async () => {
    const one = await started({}, new FakeHost().requests('GET', '/one', 200, [1]));
    const two = await started({}, new FakeHost().requests('GET', '/two', 200, [1]));
    const routesOf = async ({ host }: typeof one): Promise<unknown[]> => {
      const families = parseExposition((await host.ask('/metrics')).body);
      return samplesOf(families, 'http_server_request_duration_seconds_count').map(
        ({ labels }) => labels['http_route'],
      );
    };
    expect(await routesOf(one)).toEqual(['/one']);
    expect(await routesOf(two)).toEqual(['/two']);
  });

  it('shares the registry it is given, at the path it is given, and leaves it when it closes', async () => {
    const registry = new Registry();
    new Counter({ name: 'orders_total', help: 'Orders.', registers: [registry] }).inc(3);
    const { sink, host } = await started({ registry, path: '/internal/metrics' });
    const { body, type, status } = await host.ask('/internal/metrics');
    expect([status, type]).toEqual([200, registry.contentType]);
    expect(valueOf(parseExposition(body), 'orders_total')).toBe(3);
    expect(valueOf(parseExposition(body), 'container_cpu_periods_total')).toBe(1_000);
    await sink.close?.();
    expect([...parseExposition(await registry.metrics()).keys()]).toEqual(['orders_total']);
  });

  it('stops the boot when the registry already has one of the names', async () => {
    const registry = new Registry();
    await started({ registry });
    await expect(started({ registry })).rejects.toMatchObject({
      code: 'PERF_ERR_OPTION',
      message:
        'PERF_ERR_OPTION: `prometheusSink.registry` must not hold a metric `http_server_request_duration_seconds` yet, but it does: by another ' +
        'instrumentation, by a second application, or by the one before a hot reload that has not closed yet. Leave `registry` out, give a `prefix`, or await `close()`.',
    });
  });

  it('writes OpenMetrics when the registry does', async () => {
    const registry = new Registry();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const { host } = await started({ registry });
    for (let scrape = 0; scrape < 2; scrape++) {
      const { body, type } = await host.ask('/metrics');
      expect(type).toContain('application/openmetrics-text');
      expect(body).toContain('# TYPE container_cpu_periods counter\ncontainer_cpu_periods_total 1000\n');
      expect(body.endsWith('# EOF\n')).toBe(true);
    }
  });

  it('merges the workers of a cluster: requests add up, the container is one, of gauges the worst counts', async () => {
    const [one, two] = [new Registry(), new Registry()];
    const idle = everything();
    Object.assign(idle.snapshots, {
      eventLoop: { utilization: 0.1, delayMs: { p50: 11, p99: 12, max: 13 }, blocks: 0, blockedMs: 0 },
      guard: { github: { ...idle.snapshots.resilience!['github'], state: 'closed' } },
    });
    await started({ registry: one }, idle);
    await started({ registry: two });
    const merged = AggregatorRegistry.aggregate([await one.getMetricsAsJSON(), await two.getMetricsAsJSON()]);
    const families = parseExposition(await merged.metrics());
    expect(valueOf(families, 'http_server_request_duration_seconds_count', { http_route: '/users/:id' })).toBe(10);
    expect(valueOf(families, 'container_cpu_periods_total')).toBe(1_000);
    expect(valueOf(families, 'nodejs_eventloop_utilization_ratio')).toBe(0.4);
    expect(valueOf(families, 'nodejs_eventloop_delay_seconds', { stat: 'max' })).toBe(0.13);
    expect(valueOf(families, 'perf_resilience_open_ratio', { upstream: 'github' })).toBe(0.5);
    expect(valueOf(families, 'perf_deferred_pending')).toBe(10);
  });

  it("shares a registry with prom-client's default metrics, whose figures of the process stay theirs", async () => {
    const registry = new Registry();
    collectDefaultMetrics({ register: registry });
    const { sink } = await started({ registry });
    const shared = await registry.metrics();
    expect(shared).toContain('\nnodejs_heap_size_limit_bytes 500000\n');
    expect(shared).toMatch(/\nprocess_resident_memory_bytes \d+\n/);
    expect(shared).not.toContain('\nprocess_resident_memory_bytes 300000\n');
    await sink.close?.();
    const left = await registry.metrics();
    expect(left).toContain('\nprocess_resident_memory_bytes ');
    expect(left).not.toContain('nodejs_heap_size_limit_bytes');
  });
});
