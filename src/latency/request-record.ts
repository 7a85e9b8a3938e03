import { epochMsOf } from '../core/clock.js';
import type { RequestRecord } from '../core/record.js';
import type { RequestState } from '../core/request-state.js';
import type { FeatureHost } from '../http/feature.js';

/** The record of a request that has ended. */
export function requestRecordOf(
  state: RequestState,
  { units, release }: Pick<FeatureHost, 'units' | 'release'>,
  slowMs: number,
): RequestRecord {
  const { route, span } = state;
  const durationMs = state.endedMs - state.startedMs;
  const record: RequestRecord = {
    kind: 'request',
    id: state.id,
    method: route?.method ?? '_OTHER',
    route: route?.pattern ?? '',
    handler: route?.handler?.name ?? null,
    status: state.status,
    outcome: state.aborted ? 'aborted' : 'completed',
    startedAt: epochMsOf(state.startedMs),
    durationMs,
    blockedMs: state.blockedMs,
    delayedMs: state.delayedMs,
    variants: state.variants,
    unit: state.unit ?? units.of(state),
    note: state.note,
    release,
  };
  if (durationMs > slowMs && !state.aborted) record.slow = true;
  if (span !== null) {
    record.traceId = span.traceId;
    record.spanId = span.spanId;
  }
  return record;
}
