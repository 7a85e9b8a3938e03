import { getOrAdd } from '../../core/get-or-add.js';
import type { PerfSinkHost, RouteHistogram } from '../../core/sink.js';
import type { Duration, Series, SeriesIndex } from '../metrics/durations.js';
import type { Exemplars } from './exemplars.js';
import type { Labels, MetricValue } from './scraped-metric.js';

type Counted = Omit<RouteHistogram, 'status'> & { readonly status: number | null };

export function* listHistograms(host: PerfSinkHost): Iterable<Counted> {
  yield* host.histograms();
  for (const histogram of host.firstByteHistograms?.() ?? []) yield { ...histogram, status: null };
}

/** Makes what reads the application's histograms of one duration in Prometheus form. */
export function durationHistogram(
  name: string,
  duration: Duration,
  boundsSeconds: readonly number[],
  index: SeriesIndex<Labels>,
  exemplars: Exemplars | null,
): (histograms: readonly Counted[]) => MetricValue[] {
  const boundsMs = boundsSeconds.map((seconds) => seconds * 1_000);
  const bucketLabels = [...boundsSeconds.map(String), '+Inf'].map((le): Labels => ({ le }));
  return (histograms) => {
    // Histograms that share all labels (one pattern, two versions) are added.
    const all = new Map<Series<Labels>, { buckets: number[]; sumMs: number }>();
    // All statuses of a route are known before the first is counted: they decide whether it is counted by class.
    for (const histogram of histograms) index.of(histogram);
    for (const histogram of histograms) {
      const series = index.of(histogram);
      if (series.duration !== duration || histogram.count === 0) continue;
      const totals = getOrAdd(all, series, () => ({ buckets: bucketLabels.map(() => 0), sumMs: 0 }));
      const counts = [...histogram.countsAtMost(boundsMs), histogram.count];
      for (const [i, count] of counts.entries()) totals.buckets[i]! += count;
      totals.sumMs += histogram.sumMs;
    }
    return Array.from(all, ([series, { buckets, sumMs }]) => {
      const { labels: sharedLabels } = series;
      const line = (suffix: string, value: number, labels: Labels = {}): MetricValue => ({
        metricName: `${name}_${suffix}`,
        labels,
        sharedLabels,
        value,
      });
      return [
        ...bucketLabels.map((le, i) => ({ ...line('bucket', buckets[i]!, le), ...exemplars?.read(series, i) })),
        line('sum', sumMs / 1_000),
        line('count', buckets.at(-1)!),
      ];
    }).flat();
  };
}
