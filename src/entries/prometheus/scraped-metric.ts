import type { Metric, Point } from '../metrics/metric.js';

/** One line of an exposition. */
export interface MetricValue {
  metricName?: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

/** How cluster mode merges the processes of one container. */
type Aggregator = 'sum' | 'average' | 'max';

/**
 * A metric whose values are read when it is scraped. It does what prom-client's own metrics do for a registry (`get()`
 * and `reset()`), because its Histogram cannot be given buckets that were counted elsewhere.
 */
export class ScrapedMetric {
  constructor(
    /** Not readonly: prom-client takes `_total` off when it writes OpenMetrics. */
    public name: string,
    readonly help: string,
    readonly type: 'counter' | 'gauge' | 'histogram',
    readonly aggregator: Aggregator,
    private readonly values: () => MetricValue[],
  ) {}

  get(): Promise<{ name: string; help: string; type: string; aggregator: string; values: MetricValue[] }> {
    const { name, help, type, aggregator } = this;
    return Promise.resolve({ name, help, type, aggregator, values: this.values() });
  }

  /** The counters are the application's, not the registry's. */
  reset(): void {}
}

/** All metrics that share one Prometheus name, as one. */
export function scrapedMetric(
  group: readonly [Metric, ...Metric[]],
  read: (metric: Metric) => readonly Point[],
): ScrapedMetric {
  const [{ prometheus, help, kind }] = group;
  return new ScrapedMetric(
    prometheus.name,
    help,
    kind === 'counter' ? 'counter' : 'gauge',
    aggregatorOf(group[0]),
    () =>
      group.flatMap((metric) =>
        read(metric).map(({ value, attributes }) => ({
          labels: labelsOf(attributes, metric.prometheus.labels),
          value,
        })),
      ),
  );
}

function labelsOf(
  attributes: Readonly<Record<string, string>>,
  extra: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const labels: Record<string, string> = { ...extra };
  for (const [key, value] of Object.entries(attributes)) labels[key.replaceAll('.', '_')] = value;
  return labels;
}

/** Each process of a container sees the same container, so its figures must not be added up. */
function aggregatorOf({ name, kind }: Metric): Aggregator {
  if (name.startsWith('container.')) return 'max';
  return kind === 'gauge' ? 'average' : 'sum';
}
