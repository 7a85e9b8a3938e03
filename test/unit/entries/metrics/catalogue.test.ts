import { describe, expect, it } from 'vitest';
import { METRICS } from '../../../../src/entries/metrics/catalogue.js';
import { DURATIONS } from '../../../../src/entries/metrics/durations.js';
import { counter, gauge, upDownCounter, type Metric } from '../../../../src/entries/metrics/metric.js';
import { BlockTotals } from '../../../../src/entries/metrics/block-totals.js';
import { SeriesCap } from '../../../../src/entries/metrics/series-cap.js';
import { blockRecord } from '../../../fixtures/records.js';
import { everything, upstreamSnapshot } from '../../../fixtures/sink-host.js';

/** OpenTelemetry's rule for names in Prometheus ("Prometheus and OpenMetrics Compatibility"), for the units used here. */
function prometheusNameOf({ name, unit, kind }: Pick<Metric, 'name' | 'unit' | 'kind'>): string {
  const suffix = { s: '_seconds', By: '_bytes', '1': kind === 'gauge' ? '_ratio' : '' }[unit] ?? '';
  return `${name.replaceAll('.', '_')}${suffix}${kind === 'counter' ? '_total' : ''}`;
}

const hasOwnName = ({ prometheus: { labels, standard } }: Metric): boolean =>
  labels !== undefined || standard !== undefined;

describe('the metric catalogue', () => {
  it.each(METRICS.filter((metric) => !hasOwnName(metric)).map((metric) => [metric.name, metric]))(
    'names %s in Prometheus as a collector would',
    (_, metric) => {
      expect(metric.prometheus.name).toBe(prometheusNameOf(metric));
    },
  );

  it('calls nothing but a gauge a ratio', () => {
    const names = [gauge, counter, upDownCounter].map((named) => named('perf.share', '1').prometheus.name);
    expect(names).toEqual(['perf_share_ratio', 'perf_share_total', 'perf_share']);
  });

  it('names the histograms so, too', () => {
    for (const { name, prometheus } of DURATIONS) {
      expect(prometheus).toBe(prometheusNameOf({ name, unit: 's', kind: 'gauge' }));
    }
  });

  it('has no OpenTelemetry name twice', () => {
    expect(new Set(METRICS.map(({ name }) => name)).size).toBe(METRICS.length);
  });

  it('has points for every metric where everything is known, with the attributes it declares', () => {
    const cap = new SeriesCap();
    const blocks = new BlockTotals(cap);
    blocks.add(blockRecord());
    const measured = { snapshot: everything().snapshot(), blocks, cap };
    for (const metric of METRICS) {
      const points = metric.read(measured);
      expect(points, metric.name).not.toEqual([]);
      for (const { attributes } of points) expect(Object.keys(attributes)).toEqual(metric.attributes);
    }
  });

  it('tells nothing per user', () => {
    const snapshot = everything().snapshot();
    const asked = new Set<string>();
    const watched = new Proxy(snapshot, {
      get: (target, key) => {
        asked.add(String(key));
        return Reflect.get(target, key) as unknown;
      },
    });
    const cap = new SeriesCap();
    const points = METRICS.flatMap((metric) => metric.read({ snapshot: watched, blocks: new BlockTotals(cap), cap }));
    expect(snapshot.users).not.toEqual([]);
    expect(asked).toContain('upstream');
    expect(asked).not.toContain('users');
    expect(JSON.stringify(points)).not.toContain(snapshot.users[0]!.unit);
  });

  it('tells the idle connections of a watched pool from those in use, and what callers waited', () => {
    const cap = new SeriesCap(10);
    const read = (name: string) =>
      METRICS.find((metric) => metric.name === name)!.read({
        snapshot: everything().snapshot(),
        blocks: new BlockTotals(cap),
        cap,
      });
    const pool = { 'db.client.connection.pool.name': 'postgres db:5432/shop' };
    expect(read('db.client.connection.count')).toEqual([
      { value: 3, attributes: { ...pool, 'db.client.connection.state': 'idle' } },
      { value: 5, attributes: { ...pool, 'db.client.connection.state': 'used' } },
    ]);
    expect(read('db.client.connection.pending_requests')).toEqual([{ value: 2, attributes: pool }]);
    expect(read('perf.upstream.pool_wait')).toEqual([{ value: 1, attributes: pool }]);
  });

  it('bounds the targets of upstreams: what is beyond the cap shares one series', () => {
    const cap = new SeriesCap(2);
    const snapshot = everything().snapshot();
    const upstream = ['a', 'b', 'c', 'd'].map((target) =>
      upstreamSnapshot({ target, calls: 10, inFlight: 2, meanMs: 125 }),
    );
    const read = (name: string) =>
      METRICS.find((metric) => metric.name === name)!.read({
        snapshot: { ...snapshot, upstream },
        blocks: new BlockTotals(cap),
        cap,
      });
    const of = (target: string, value: number) => ({ value, attributes: { target, kind: 'http' } });
    expect(read('perf.upstream.calls')).toEqual([of('a', 10), of('b', 10), of('other', 20)]);
    expect(read('perf.upstream.time')).toEqual([of('a', 1), of('b', 1), of('other', 2)]);
    expect(read('perf.upstream.active_calls')).toEqual([of('a', 2), of('b', 2), of('other', 4)]);
  });
});
