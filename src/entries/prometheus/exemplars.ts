import { getOrAdd } from '../../core/get-or-add.js';
import type { RequestRecord } from '../../core/record.js';
import type { Series } from '../metrics/durations.js';
import type { Exemplar, Labels } from './scraped-metric.js';

interface Kept extends Exemplar {
  isScraped: boolean;
}

/** The slowest traced request of each bucket since the last scrape; until there is one, that of before. */
export class Exemplars {
  private readonly kept = new Map<Series<Labels>, (Kept | undefined)[]>();

  constructor(private readonly boundsSeconds: readonly number[]) {}

  add(series: Series<Labels>, { traceId, spanId, durationMs, startedAt }: RequestRecord): void {
    if (traceId === undefined) return;
    const value = durationMs / 1_000;
    const found = this.boundsSeconds.findIndex((bound) => value <= bound);
    const bucket = found === -1 ? this.boundsSeconds.length : found;
    const buckets = getOrAdd(this.kept, series, () => []);
    const known = buckets[bucket];
    if (known !== undefined && !known.isScraped && known.value >= value) return;
    const labelSet = { trace_id: traceId, ...(spanId === undefined ? {} : { span_id: spanId }) };
    buckets[bucket] = { labelSet, value, timestamp: (startedAt + durationMs) / 1_000, isScraped: false };
  }

  /** The exemplar of a bucket by its position; the last is `+Inf`. */
  read(series: Series<Labels>, bucket: number): { exemplar: Exemplar } | null {
    const exemplar = this.kept.get(series)?.[bucket];
    if (exemplar === undefined) return null;
    exemplar.isScraped = true;
    return { exemplar };
  }
}
