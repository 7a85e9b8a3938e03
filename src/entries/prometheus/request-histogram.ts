import type { RouteHistogram } from '../../core/sink.js';
import { REQUEST_BOUNDS_SECONDS, REQUEST_DURATION } from '../metrics/request-duration.js';
import type { SeriesCap } from '../metrics/series-cap.js';
import type { MetricValue } from './scraped-metric.js';

const BOUNDS_MS = REQUEST_BOUNDS_SECONDS.map((seconds) => seconds * 1_000);
const { prometheus: NAME } = REQUEST_DURATION;
const LE = REQUEST_BOUNDS_SECONDS.map((bound) => ({ le: String(bound) }));
const LE_INFINITY = { le: '+Inf' };
const NO_LABELS = {};

type Labels = Readonly<Record<string, string>>;

interface Series {
  labels: Labels;
  /** At most each bound; cumulative. */
  buckets: number[];
  count: number;
  sumMs: number;
}

/** The application's histograms in Prometheus form. */
export class RequestHistogram {
  /** Kept from scrape to scrape, so that the text of each is made once. */
  private readonly labels = new Map<string, Labels>();

  constructor(private readonly cap: SeriesCap) {}

  values(histograms: Iterable<RouteHistogram>): MetricValue[] {
    const values: MetricValue[] = [];
    for (const { labels, buckets, count, sumMs } of this.series(histograms)) {
      for (const [i, le] of LE.entries()) values.push(line('_bucket', le, labels, buckets[i]!));
      values.push(line('_bucket', LE_INFINITY, labels, count));
      values.push(line('_sum', NO_LABELS, labels, sumMs / 1_000));
      values.push(line('_count', NO_LABELS, labels, count));
    }
    return values;
  }

  /** Histograms that share all labels (one pattern, two versions) are added. */
  private series(histograms: Iterable<RouteHistogram>): Iterable<Series> {
    const all = new Map<Labels, Series>();
    for (const histogram of histograms) {
      if (histogram.count === 0) continue;
      const labels = this.labelsOf(histogram);
      let series = all.get(labels);
      if (series === undefined) {
        all.set(labels, (series = { labels, buckets: BOUNDS_MS.map(() => 0), count: 0, sumMs: 0 }));
      }
      for (const [i, count] of histogram.countsAtMost(BOUNDS_MS).entries()) series.buckets[i]! += count;
      series.count += histogram.count;
      series.sumMs += histogram.sumMs;
    }
    return all.values();
  }

  private labelsOf({ method, route, status }: RouteHistogram): Labels {
    const capped = this.cap.route(route);
    const key = `${method} ${status} ${capped}`;
    let labels = this.labels.get(key);
    if (labels === undefined) {
      labels = { http_request_method: method, http_route: capped, http_response_status_code: String(status) };
      this.labels.set(key, labels);
    }
    return labels;
  }
}

const line = (suffix: string, labels: Labels, sharedLabels: Labels, value: number): MetricValue => ({
  metricName: `${NAME}${suffix}`,
  labels,
  sharedLabels,
  value,
});
