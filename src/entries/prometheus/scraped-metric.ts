import type { Metric, Point } from '../metrics/metric.js';

/** One line of an exposition. */
export interface MetricValue {
  metricName?: string;
  labels: Readonly<Record<string, string>>;
  /** Labels that many lines have in common, the same object in each scrape: prom-client then writes them only once. */
  sharedLabels?: Readonly<Record<string, string>>;
  value: number;
}

interface MetricValues {
  name: string;
  help: string;
  type: string;
  aggregator: string;
  values: MetricValue[];
}

/** How cluster mode merges the processes of one container. */
type Aggregator = 'sum' | 'average' | 'max';

/**
 * A metric whose values are read when it is scraped. It does what prom-client's own metrics do for a registry (`get()`
 * and `reset()`), because its own Histogram cannot be given buckets that were counted elsewhere.
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

  get(): Promise<MetricValues> {
    const values = this.values().map(({ sharedLabels, labels, ...value }) => ({
      ...value,
      labels: { ...labels, ...sharedLabels },
    }));
    return Promise.resolve(this.withValues(values));
  }

  /** What a registry asks for instead when it writes text; only there are `sharedLabels` understood. */
  getForPromString(): Promise<MetricValues> {
    return Promise.resolve(this.withValues(this.values()));
  }

  /** The counters are the application's, not the registry's. */
  reset(): void {}

  private withValues(values: MetricValue[]): MetricValues {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values };
  }
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
