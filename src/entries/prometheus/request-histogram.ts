import type { RouteHistogram } from '../../core/sink.js';
import { REQUEST_BOUNDS_SECONDS, REQUEST_DURATION } from '../metrics/request-duration.js';
import type { SeriesCap } from '../metrics/series-cap.js';
import type { MetricValue } from './scraped-metric.js';

const BOUNDS_MS = REQUEST_BOUNDS_SECONDS.map((seconds) => seconds * 1_000);
const { prometheus: NAME } = REQUEST_DURATION;

interface Series {
  labels: Record<string, string>;
  /** At most each bound; cumulative. */
  buckets: number[];
  count: number;
  sumMs: number;
}

/** The application's histograms in Prometheus form; those that share all labels (one pattern, two versions) are added. */
export function requestHistogram(histograms: Iterable<RouteHistogram>, cap: SeriesCap): MetricValue[] {
  const all = new Map<string, Series>();
  for (const histogram of histograms) {
    if (histogram.count === 0) continue;
    const route = cap.route(histogram.route);
    const key = `${histogram.method} ${histogram.status} ${route}`;
    let series = all.get(key);
    if (series === undefined) {
      const labels = {
        http_request_method: histogram.method,
        http_route: route,
        http_response_status_code: String(histogram.status),
      };
      all.set(key, (series = { labels, buckets: BOUNDS_MS.map(() => 0), count: 0, sumMs: 0 }));
    }
    histogram.countsAtMost(BOUNDS_MS).forEach((count, i) => (series.buckets[i]! += count));
    series.count += histogram.count;
    series.sumMs += histogram.sumMs;
  }
  return Array.from(all.values(), (series) => [...valuesOf(series)]).flat();
}

function* valuesOf({ labels, buckets, count, sumMs }: Series): Iterable<MetricValue> {
  for (const [i, bound] of REQUEST_BOUNDS_SECONDS.entries()) {
    yield { metricName: `${NAME}_bucket`, labels: { le: String(bound), ...labels }, value: buckets[i]! };
  }
  yield { metricName: `${NAME}_bucket`, labels: { le: '+Inf', ...labels }, value: count };
  yield { metricName: `${NAME}_sum`, labels, value: sumMs / 1_000 };
  yield { metricName: `${NAME}_count`, labels, value: count };
}
