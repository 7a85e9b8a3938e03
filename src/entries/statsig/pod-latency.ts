import { Histogram } from '../../core/histogram.js';
import type { RequestRecord } from '../../core/record.js';
import type { StatsigEvent } from './client.js';

/** `pod_latency`: the successful requests (completed, status below 400) of this pod in one interval. */
export class PodLatency {
  private histogram = new Histogram();

  add(record: RequestRecord): void {
    if (record.outcome === 'completed' && record.status < 400) this.histogram.record(record.durationMs);
  }

  /** Ends the interval, at this time (epoch milliseconds); null when there was no request. */
  take(pod: string, at: number): StatsigEvent | null {
    const { histogram } = this;
    if (histogram.count === 0) return null;
    this.histogram = new Histogram();
    return {
      name: 'pod_latency',
      at,
      user: { userID: pod },
      value: histogram.meanMs,
      metadata: { pod, count: histogram.count, p95: histogram.quantileMs(0.95) },
    };
  }
}
