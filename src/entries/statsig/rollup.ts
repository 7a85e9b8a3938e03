import { Histogram } from '../../core/histogram.js';
import type { RequestRecord } from '../../core/record.js';
import type { StatsigEvent, StatsigMetadata } from './client.js';
import { label, buildMetadata } from './limits.js';

/** Most groups of an interval. Routes are patterns: applications have far fewer. */
const MAX_GROUPS = 1_000;
/** Name of the route under which further groups are counted. */
const OVERFLOW = '_OTHER';

interface Group {
  metadata: StatsigMetadata;
  count: number;
  sum: number;
  sumSquares: number;
}

/** Requests of one interval by method, route, status class, outcome and variants: one event a group. */
export class Rollup {
  private readonly groups = new Map<string, Group>();

  add(record: RequestRecord, pod: string): void {
    const group = this.findGroup(record, pod);
    group.count += 1;
    group.sum += record.durationMs;
    group.sumSquares += record.durationMs * record.durationMs;
  }

  /** Ends the interval, at this time (epoch milliseconds). */
  take(pod: string, at: number): StatsigEvent[] {
    const events: StatsigEvent[] = [];
    for (const { metadata, count, sum, sumSquares } of this.groups.values()) {
      const event = { name: 'api_request', at, user: { userID: pod }, value: sum / count };
      events.push({ ...event, metadata: { ...metadata, count, sum, sumSquares } });
    }
    this.groups.clear();
    return events;
  }

  private findGroup(record: RequestRecord, pod: string): Group {
    const { method, outcome } = record;
    const status = `${Math.floor(record.status / 100)}xx`;
    const key = JSON.stringify([method, record.route, record.handler, status, outcome, record.variants]);
    const known = this.groups.get(key);
    if (known !== undefined) return known;
    if (this.groups.size >= MAX_GROUPS && record.route !== OVERFLOW)
      return this.findGroup({ ...record, route: OVERFLOW, handler: null, variants: null }, pod);
    const handler = record.handler === null ? null : label(record.handler);
    const own = { method, route: label(record.route), status, handler, outcome, pod };
    const metadata = buildMetadata(own, record.variants);
    const group = { metadata, count: 0, sum: 0, sumSquares: 0 };
    this.groups.set(key, group);
    return group;
  }
}

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
