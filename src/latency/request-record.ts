import { epochMsOf } from '../core/clock.js';
import type { RequestRecord } from '../core/record.js';
import type { RequestState } from '../core/request-state.js';
import { TIME_SPLIT } from '../core/request-time.js';

/** The record of a request that has ended. */
export function requestRecordOf(state: RequestState): RequestRecord {
  const { route, span } = state;
  const split = TIME_SPLIT.get(state);
  const record: RequestRecord = {
    kind: 'request',
    id: state.id,
    method: route?.method ?? '_OTHER',
    route: route?.pattern ?? '',
    handler: route?.handler?.name ?? null,
    status: state.status,
    outcome: state.aborted ? 'aborted' : 'completed',
    startedAt: epochMsOf(state.startedMs),
    durationMs: state.endedMs - state.startedMs,
    blockedMs: state.blockedMs,
    delayedMs: state.delayedMs,
    variants: state.variants,
    unit: state.unit,
    note: state.note,
    time: split?.time ?? null,
    upstream: split?.upstream ?? null,
  };
  if (span !== null) {
    record.traceId = span.traceId;
    record.spanId = span.spanId;
  }
  return record;
}
