import type { Registry, Metric as VendorMetric } from 'prom-client';
import { PerfError } from '../../core/perf.error.js';
import type { PerfSinkHost } from '../../core/sink.js';
import type { BlockTotals } from '../metrics/block-totals.js';
import { METRICS } from '../metrics/catalogue.js';
import { DURATIONS, REQUEST, SeriesIndex, type Attributes } from '../metrics/durations.js';
import type { Measured, Metric } from '../metrics/metric.js';
import type { SeriesCap } from '../metrics/series-cap.js';
import type { Exemplars } from './exemplars.js';
import { durationHistogram, listHistograms } from './duration-histogram.js';
import { ScrapedMetric, type Labels } from './scraped-metric.js';

export type AnyRegistry = Pick<Registry, 'metrics' | 'registerMetric' | 'getSingleMetric' | 'removeSingleMetric'> & {
  readonly contentType: string;
};

export interface Exposition {
  prefix: string;
  labels: Labels;
  boundsSeconds: readonly number[];
  byClass: boolean;
  maxSeries: number;
  exemplars: Exemplars | null;
}

export interface Registration {
  readonly index: SeriesIndex<Labels>;
  remove(): void;
}

/**
 * Registers every metric of one application. Nothing is counted twice: a scrape reads what the application has counted.
 * @throws PERF_ERR_OPTION when the registry already has one of the names
 */
export function registerMetrics(
  registry: AnyRegistry,
  host: PerfSinkHost,
  { blocks, cap }: { blocks: BlockTotals; cap: SeriesCap },
  { prefix, labels: base, boundsSeconds, byClass, maxSeries, exemplars }: Exposition,
): Registration {
  const measured = oncePerTurn((): Measured => ({ snapshot: host.snapshot(), blocks, cap }));
  const index = new SeriesIndex<Labels>(cap, {
    toLabels: (attributes) => ({ ...base, ...toLabels(attributes) }),
    byClass,
    maxSeries,
  });
  const histograms = DURATIONS.map((duration) => {
    const name = `${prefix}${duration.prometheus}`;
    const readValues = durationHistogram(name, duration, boundsSeconds, index, duration === REQUEST ? exemplars : null);
    return new ScrapedMetric(name, duration.help, 'histogram', 'sum', () => readValues([...listHistograms(host)]));
  });
  const others = byPrometheusName().filter((group) => !isThereAlready(registry, prefix, group[0]));
  const metrics = [...histograms, ...others.map((group) => scrapedMetric(group, prefix, base, measured))];
  const names = metrics.map((metric) => metric.name);
  for (const name of names) if (registry.getSingleMetric(name) !== undefined) throw nameTaken(name);
  for (const metric of metrics) registry.registerMetric(metric as unknown as VendorMetric);
  return {
    index,
    remove() {
      for (const name of names) registry.removeSingleMetric(name);
    },
  };
}

type Group = readonly [Metric, ...Metric[]];

function scrapedMetric(group: Group, prefix: string, base: Labels, measured: () => Measured): ScrapedMetric {
  const [{ prometheus, help, kind }] = group;
  const type = kind === 'counter' ? 'counter' : 'gauge';
  return new ScrapedMetric(`${prefix}${prometheus.name}`, help, type, chooseAggregator(group[0]), () =>
    group.flatMap((metric) =>
      metric.read(measured()).map(({ value, attributes }) => ({
        labels: { ...base, ...metric.prometheus.labels, ...toLabels(attributes) },
        value,
      })),
    ),
  );
}

function byPrometheusName(): Group[] {
  const names = new Set(METRICS.map(({ prometheus }) => prometheus.name));
  return Array.from(names, (name) => METRICS.filter(({ prometheus }) => prometheus.name === name) as [Metric]);
}

/** `collectDefaultMetrics()` of prom-client has the same figures of the process. */
const isThereAlready = (registry: AnyRegistry, prefix: string, { prometheus }: Metric): boolean =>
  prometheus.standard === true && registry.getSingleMetric(`${prefix}${prometheus.name}`) !== undefined;

const labelName = (attribute: string): string => attribute.replaceAll('.', '_');

const toLabels = (attributes: Attributes): Labels =>
  Object.fromEntries(Object.entries(attributes).map(([key, value]) => [labelName(key), String(value)]));

/** Each process of a container sees the same container. Of the other gauges the worst worker counts: a mean would hide it. */
const chooseAggregator = ({ name, kind }: Metric): 'sum' | 'max' =>
  kind === 'gauge' || name.startsWith('container.') ? 'max' : 'sum';

/** A registry reads all its metrics in one turn of the event loop: they share one snapshot. */
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
    `\`prometheusSink.registry\` must not hold a metric \`${name}\` yet, but it does: by another instrumentation, by a second ` +
      'application, or by the one before a hot reload that has not closed yet. Leave `registry` out, give a `prefix`, or await `close()`.',
  );
}
