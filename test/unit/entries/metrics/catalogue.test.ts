import { describe, expect, it } from 'vitest';
import { METRICS } from '../../../../src/entries/metrics/catalogue.js';
import { REQUEST_DURATION } from '../../../../src/entries/metrics/request-duration.js';
import type { Metric } from '../../../../src/entries/metrics/metric.js';

/** OpenTelemetry's rule for names in Prometheus ("Prometheus and OpenMetrics Compatibility"), for the units used here. */
function prometheusNameOf({ name, unit, kind }: Pick<Metric, 'name' | 'unit' | 'kind'>): string {
  const suffix = { s: '_seconds', By: '_bytes', '1': kind === 'gauge' ? '_ratio' : '' }[unit] ?? '';
  return `${name.replaceAll('.', '_')}${suffix}${kind === 'counter' ? '_total' : ''}`;
}

describe('the metric catalogue', () => {
  it.each(METRICS.filter((metric) => metric.prometheus.labels === undefined).map((metric) => [metric.name, metric]))(
    'names %s in Prometheus as a collector would',
    (_, metric) => {
      expect(metric.prometheus.name).toBe(prometheusNameOf(metric));
    },
  );

  it('names the request histogram so, too', () => {
    expect(REQUEST_DURATION.prometheus).toBe(prometheusNameOf({ ...REQUEST_DURATION, kind: 'gauge' }));
  });

  it('has no OpenTelemetry name twice', () => {
    expect(new Set(METRICS.map(({ name }) => name)).size).toBe(METRICS.length);
  });
});
