import type { Registry, Metric as VendorMetric } from 'prom-client';
import { PerfError } from '../../core/perf.error.js';
import type { PerfSinkHost } from '../../core/sink.js';
import type { BlockTotals } from '../metrics/block-totals.js';
import { METRICS } from '../metrics/catalogue.js';
import type { Measured, Metric } from '../metrics/metric.js';
import { REQUEST_DURATION } from '../metrics/request-duration.js';
import type { SeriesCap } from '../metrics/series-cap.js';
import { RequestHistogram } from './request-histogram.js';
import { ScrapedMetric, scrapedMetric } from './scraped-metric.js';

/** A registry of either content type. */
export type AnyRegistry = Pick<Registry, 'metrics' | 'registerMetric' | 'getSingleMetric' | 'removeSingleMetric'> & {
  readonly contentType: string;
};

/**
 * Registers every metric of one application. Nothing is counted twice: a scrape reads what the application has counted.
 * @returns how to take them out again
 * @throws PERF_ERR_OPTION when the registry already holds one of the names
 */
export function registerMetrics(
  registry: AnyRegistry,
  host: PerfSinkHost,
  { blocks, cap }: { blocks: BlockTotals; cap: SeriesCap },
): () => void {
  const measured = oncePerTurn((): Measured => ({ snapshot: host.snapshot(), blocks }));
  const { prometheus, help } = REQUEST_DURATION;
  const requests = new RequestHistogram(cap);
  const metrics = [
    new ScrapedMetric(prometheus, help, 'histogram', 'sum', () => requests.values(host.histograms())),
    ...byPrometheusName().map((group) => scrapedMetric(group, (metric) => metric.read(measured()))),
  ];
  const names = metrics.map((metric) => metric.name);
  for (const name of names) if (registry.getSingleMetric(name) !== undefined) throw nameTaken(name);
  for (const metric of metrics) registry.registerMetric(metric as unknown as VendorMetric);
  return () => {
    for (const name of names) registry.removeSingleMetric(name);
  };
}

function byPrometheusName(): [Metric, ...Metric[]][] {
  const groups = new Map<string, [Metric, ...Metric[]]>();
  for (const metric of METRICS) {
    const group = groups.get(metric.prometheus.name);
    if (group === undefined) groups.set(metric.prometheus.name, [metric]);
    else group.push(metric);
  }
  return [...groups.values()];
}

/** A registry asks all its metrics in one turn of the event loop: they share one snapshot. */
function oncePerTurn<T extends object>(make: () => T): () => T {
  let current: T | null = null;
  return () => {
    if (current === null) {
      current = make();
      queueMicrotask(() => (current = null));
    }
    return current;
  };
}

function nameTaken(name: string): PerfError {
  return new PerfError(
    'PERF_ERR_OPTION',
    `\`prometheusSink.registry\` must not hold a metric \`${name}\` yet, but it does: by another instrumentation, or because two ` +
      'applications share the registry. Leave `registry` out: then each application has its own.',
  );
}
