import { epochMsOf } from '../core/clock.js';
import type { RequestRecord, Unit } from '../core/record.js';
import type { RequestState } from '../core/request-state.js';
import { TIME_SPLIT } from '../core/request-time.js';
import { REDACT_USER } from '../core/users.js';
import type { FeatureHost } from '../http/feature.js';

/** Whom it was for, redacted where that is asked for. */
function unitOf(state: RequestState, { requests, units }: Pick<FeatureHost, 'requests' | 'units'>): Unit | null {
  const unit = units.of(state);
  const redact = REDACT_USER.get(requests);
  return unit === null || redact === null ? unit : { userId: redact(unit.userId) };
}

/** The record of a request that has ended. */
export function requestRecordOf(
  state: RequestState,
  host: Pick<FeatureHost, 'requests' | 'units' | 'release'>,
  slowMs: number,
): RequestRecord {
  const { route, span } = state;
  const durationMs = state.endedMs - state.startedMs;
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
    durationMs,
    blockedMs: state.blockedMs,
    delayedMs: state.delayedMs,
    variants: state.variants,
    // What experiments hand on is theirs.
    unit: state.unit ?? unitOf(state, host),
    note: state.note,
    release: host.release,
    time: split?.time ?? null,
    upstream: split?.upstream ?? null,
  };
  if (durationMs > slowMs && !state.aborted) record.slow = true;
  if (span !== null) {
    record.traceId = span.traceId;
    record.spanId = span.spanId;
  }
  return record;
}
