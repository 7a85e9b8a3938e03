import { createServer } from 'node:http';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AddressInfo } from 'node:net';
import { describe, expect, inject, it } from 'vitest';
import { OncePerCause } from '../../../../src/core/reporter.js';
import { prometheusSink, type PrometheusSinkOptions } from '../../../../src/entries/prometheus.js';
import { parseExposition, samplesOf, valueOf, type Family, type Sample } from '../../../fixtures/exposition.js';
import { blockRecord } from '../../../fixtures/records.js';
import { recorderOf } from '../../../fixtures/recorder.js';
import { everything } from '../../../fixtures/sink-host.js';
import { until } from '../../../fixtures/until.js';

const started = async (options: PrometheusSinkOptions) => {
  const host = everything();
  const sink = prometheusSink(options);
  await sink.start?.(host);
  await sink.publish([blockRecord()]);
  return { sink, host };
};
const scrapeOf = async (options: PrometheusSinkOptions): Promise<Map<string, Family>> => {
  const { host } = await started(options);
  return parseExposition((await host.ask('/metrics')).body);
};
const allSamples = (families: Map<string, Family>): Sample[] =>
  [...families.values()].flatMap(({ samples }) => samples);

const silent = new OncePerCause({ log: () => {}, warn: () => {}, error: () => {} }, () => 0);

describe('prometheusSink', () => {
  it('begins every name with `prefix`', async () => {
    const plain = await scrapeOf({});
    const prefixed = await scrapeOf({ prefix: 'shop_' });
    expect([...prefixed.keys()]).toEqual([...plain.keys()].map((name) => `shop_${name}`));
    expect(valueOf(prefixed, 'shop_container_memory_working_set_bytes')).toBe(250_000);
    expect(valueOf(prefixed, 'shop_perf_handler_duration_seconds_count', { kind: 'message' })).toBe(2);
  });

  it('counts durations in `buckets`, requests as handlers', async () => {
    const families = await scrapeOf({ buckets: [0.002, 0.035, 0.8] });
    const of = (name: string, labels: Record<string, string>): [string | undefined, number][] =>
      samplesOf(families, `${name}_bucket`, labels).map(({ labels: { le }, value }) => [le, value]);
    const users = { http_route: '/users/:id' };
    expect(of('http_server_request_duration_seconds', users)).toEqual([
      ['0.002', 0],
      ['0.035', 3],
      ['0.8', 4],
      ['+Inf', 5],
    ]);
    expect(of('perf_handler_duration_seconds', { kind: 'message' }).map(([, value]) => value)).toEqual([0, 1, 2, 2]);
  });

  it('puts `labels` on every metric beside its own', async () => {
    const labels = { team: 'shop', region: 'eu "1"' };
    const samples = allSamples(await scrapeOf({ labels }));
    const plain = allSamples(await scrapeOf({}));
    expect(samples).toEqual(plain.map((sample) => ({ ...sample, labels: { ...labels, ...sample.labels } })));
  });

  it('leaves a metric the labels that it has itself', async () => {
    const samples = allSamples(await scrapeOf({ labels: { cause: 'x' } }));
    const ofBlocks = samples.filter(({ name }) => name === 'perf_eventloop_blocks_total');
    expect(ofBlocks.map(({ labels }) => labels['cause'])).toEqual(['javascript']);
    expect(samples.find(({ name }) => name === 'container_cpu_periods_total')?.labels).toEqual({ cause: 'x' });
  });

  it.each([
    [{ path: 'metrics' }, '`prometheusSink.path` must be a path that begins with `/`, got `"metrics"` (string).'],
    [{ port: 70_000 }, '`prometheusSink.port` must be a port from 0 to 65535, got `70000` (number).'],
    [{ port: '9464' }, '`prometheusSink.port` must be a port from 0 to 65535, got `"9464"` (string).'],
    [
      { prefix: 'my-shop_' },
      '`prometheusSink.prefix` must be the beginning of a metric name: letters, digits and `_`, no digit first, got `"my-shop_"` (string).',
    ],
    [{ buckets: [] }, '`prometheusSink.buckets` must be a list of seconds, ascending, got an array of 0.'],
    [{ buckets: [1, 0.5] }, '`prometheusSink.buckets` must be a list of seconds, ascending, got an array of 2.'],
    [{ buckets: [0] }, '`prometheusSink.buckets[0]` must be a number of seconds above 0, got `0` (number).'],
    [{ labels: ['a'] }, '`prometheusSink.labels` must be an object of label names and their texts, got an array of 1.'],
    [{ labels: { team: 7 } }, '`prometheusSink.labels.team` must be a text, got `7` (number).'],
    [
      { labels: { 'my-team': 'a' } },
      '`prometheusSink.labels` must be an object whose keys are letters, digits and `_`, without a digit or `__` first, and not `le`, got `"my-team"` (string).',
    ],
    [
      { labels: { __name__: 'a' } },
      '`prometheusSink.labels` must be an object whose keys are letters, digits and `_`, without a digit or `__` first, and not `le`, got `"__name__"` (string).',
    ],
    [
      { labels: { le: 'a' } },
      '`prometheusSink.labels` must be an object whose keys are letters, digits and `_`, without a digit or `__` first, and not `le`, got `"le"` (string).',
    ],
    [{ registry: {} }, '`prometheusSink.registry` must be a Registry of prom-client, got an object.'],
    [
      { authorize: true },
      '`prometheusSink.authorize` must be a function of the request that answers with a boolean, got `true` (boolean).',
    ],
    [{ pth: '/m' }, '`prometheusSink.pth` is not an option. Known options: '],
  ])('refuses %j', (options, message) => {
    expect(() => prometheusSink(options as PrometheusSinkOptions)).toThrow(`PERF_ERR_OPTION: ${message}`);
  });
});

describe('prometheusSink with a port of its own', () => {
  const urlOf = ({ port }: { port: number | null }, path: string): string => `http://127.0.0.1:${port}${path}`;

  it('listens there and not on the application, tells where, and stops when it is closed', async () => {
    const sink = prometheusSink({ port: 0, path: '/internal/metrics' });
    expect(sink.port).toBeNull();
    const host = everything();
    await sink.start?.(host);
    expect(host.routes.size).toBe(0);
    const url = urlOf(sink, '/internal/metrics');
    const response = await fetch(url);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(valueOf(parseExposition(await response.text()), 'container_cpu_periods_total')).toBe(1_000);
    expect((await fetch(`${url}?x=1`)).status).toBe(200);
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
    expect((await fetch(url, { method: 'POST' })).status).toBe(404);
    expect((await fetch(urlOf(sink, '/metrics'))).status).toBe(404);
    await sink.close?.();
    expect(sink.port).toBeNull();
    // Its connection, and then a new one.
    await expect(fetch(url)).rejects.toThrow('fetch failed');
    await expect(fetch(url)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
  });

  it('closes although a scrape hangs', async () => {
    let asked = false;
    const authorize = (): Promise<boolean> => {
      asked = true;
      return new Promise(() => {});
    };
    const { sink } = await started({ port: 0, authorize });
    const scrape = fetch(urlOf(sink, '/metrics'));
    await until('the scrape has arrived', () => asked);
    const failed = expect(scrape).rejects.toThrow('fetch failed');
    await sink.close?.();
    await failed;
  });

  it('lets `authorize` see the request', async () => {
    const { sink } = await started({ port: 0, authorize: ({ headers }) => headers.authorization === 'Bearer scraper' });
    expect((await fetch(urlOf(sink, '/metrics'))).status).toBe(403);
    const allowed = await fetch(urlOf(sink, '/metrics'), { headers: { authorization: 'Bearer scraper' } });
    expect(allowed.status).toBe(200);
    await sink.close?.();
  });

  it('serves each of two applications that share it, until that one closes', async () => {
    const sink = prometheusSink({ port: 0 });
    const recorders = [everything(), everything()].map((host) => ({ host, recorder: recorderOf([sink], silent) }));
    const urls: string[] = [];
    for (const { host, recorder } of recorders) {
      await recorder.start(() => host, 1_000);
      urls.push(urlOf(sink, '/metrics'));
    }
    const [first, second] = urls as [string, string];
    await recorders[1]!.recorder.close(1_000);
    await expect(fetch(second)).rejects.toThrow('fetch failed');
    expect((await fetch(first)).status).toBe(200);
    await recorders[0]!.recorder.close(1_000);
    await expect(fetch(first)).rejects.toThrow('fetch failed');
  });

  it('says once when the port is taken, and takes it as soon as the process before has closed', async () => {
    const other = createServer().listen(0);
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const sink = prometheusSink({ port });
    const host = everything();
    await sink.start?.(host);
    expect(sink.port).toBeNull();
    expect(host.reports).toEqual([
      `Port ${port} of prometheusSink() is taken: the process before may still be closing. It is tried again every second; until then there are no metrics.`,
    ]);
    other.close();
    await until('the port is taken over', () => sink.port === port);
    expect((await fetch(urlOf(sink, '/metrics'))).status).toBe(200);
    await sink.close?.();
    await expect(fetch(`http://127.0.0.1:${port}/metrics`)).rejects.toThrow('fetch failed');
  });

  it('gives up a port that is still taken when it is closed', async () => {
    const other = createServer().listen(0);
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const sink = prometheusSink({ port });
    await sink.start?.(everything());
    await sink.close?.();
    other.close();
    await once(other, 'close');
    const next = createServer().listen(port);
    await once(next, 'listening');
    next.close();
    expect(sink.port).toBeNull();
  });

  it('tells the second worker of a cluster, and those that answer scrapes in turn', async () => {
    const lines = await clusterOutput();
    expect(lines.filter((line) => line.startsWith('listens'))).toHaveLength(1);
    expect(
      lines.filter((line) => line.includes('another worker of this cluster may have it. Give each worker a `port`')),
    ).toHaveLength(1);
    expect(lines.filter((line) => line.includes('workers answer scrapes in turn'))).toHaveLength(2);
  });
});

/** What two workers of a cluster say that start a sink at one port, and one at the application's. */
async function clusterOutput(): Promise<string[]> {
  const free = createServer().listen(0);
  await once(free, 'listening');
  const { port } = free.address() as AddressInfo;
  free.close();
  await once(free, 'close');
  const program = join(inject('compiledFixtures'), 'cluster-metrics.process.js');
  const { stdout } = await promisify(execFile)(process.execPath, [program, String(port)]);
  return stdout.trim().split('\n');
}
