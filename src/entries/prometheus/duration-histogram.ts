import { entryOf } from '../../core/entry-of.js';
import type { RouteHistogram } from '../../core/sink.js';
import type { Duration, Series, SeriesIndex } from '../metrics/durations.js';
import type { Labels, MetricValue } from './scraped-metric.js';

const LE_INFINITY = { le: '+Inf' };
const NO_LABELS = {};

interface Totals {
  buckets: number[];
  count: number;
  sumMs: number;
}

/** The application's histograms of one duration in Prometheus form. */
export class DurationHistogram {
  private readonly boundsMs: readonly number[];
  private readonly le: readonly Labels[];

  constructor(
    private readonly name: string,
    private readonly duration: Duration,
    boundsSeconds: readonly number[],
    private readonly index: SeriesIndex<Labels>,
  ) {
    this.boundsMs = boundsSeconds.map((seconds) => seconds * 1_000);
    this.le = boundsSeconds.map((bound) => ({ le: String(bound) }));
  }

  values(histograms: Iterable<RouteHistogram>): MetricValue[] {
    const values: MetricValue[] = [];
    for (const [{ labels }, { buckets, count, sumMs }] of this.totals(histograms)) {
      for (const [i, le] of this.le.entries()) values.push(this.line('_bucket', le, labels, buckets[i]!));
      values.push(this.line('_bucket', LE_INFINITY, labels, count));
      values.push(this.line('_sum', NO_LABELS, labels, sumMs / 1_000));
      values.push(this.line('_count', NO_LABELS, labels, count));
    }
    return values;
  }

  /** Histograms that share all labels (one pattern, two versions) are added. */
  private totals(histograms: Iterable<RouteHistogram>): ReadonlyMap<Series<Labels>, Totals> {
    const all = new Map<Series<Labels>, Totals>();
    for (const histogram of histograms) {
      const series = this.index.of(histogram);
      if (series.duration !== this.duration || histogram.count === 0) continue;
      const totals = entryOf(all, series, () => ({ buckets: this.boundsMs.map(() => 0), count: 0, sumMs: 0 }));
      for (const [i, count] of histogram.countsAtMost(this.boundsMs).entries()) totals.buckets[i]! += count;
      totals.count += histogram.count;
      totals.sumMs += histogram.sumMs;
    }
    return all;
  }

  private line(suffix: string, labels: Labels, sharedLabels: Labels, value: number): MetricValue {
    return { metricName: `${this.name}${suffix}`, labels, sharedLabels, value };
  }
}
