import { counted } from '../core/figures.js';
import type { RequestRecord } from '../core/record.js';
import { nameRoute, describeSize } from './names.js';
import type { Repeated } from './repeats.js';

export function slowText(record: RequestRecord, withUnit: boolean): string {
  const { durationMs, status, blockedMs, delayedMs, time, note, unit, id } = record;
  const blocked = blockedMs < 1 ? '' : `, blocked the event loop for ${blockedMs.toFixed(0)} ms`;
  const delayed = delayedMs < 1 ? '' : `, delayed ${delayedMs.toFixed(0)} ms while the event loop stood still`;
  const pool =
    time === null || time.poolWaitMs < 1 ? '' : `, ${time.poolWaitMs.toFixed(0)} ms waiting for a connection of a pool`;
  const user = withUnit && unit !== null ? `, user ${unit.userId}` : '';
  return `${nameRoute(record)} took ${durationMs.toFixed(0)} ms: status ${status}${blocked}${delayed}${pool}${upstreamText(record)}${idleText(record)}${describeSize(note)}${user}, id ${id}`;
}

/** For a request that waited for upstreams for at least half of its time: the one whose calls took longest. */
function upstreamText({ durationMs, time, upstream }: RequestRecord): string {
  const [most] = upstream?.toSorted((a, b) => b.wallMs - a.wallMs) ?? [];
  if (time === null || most === undefined || time.upstreamMs < durationMs / 2) return '';
  const who = upstream!.length === 1 ? most.target : `upstreams, most of it for ${most.target}`;
  return `, ${time.upstreamMs.toFixed(0)} ms waiting for ${who} (${counted(most.calls, 'call')})`;
}

/** For a request that was idle for most of its time without a known upstream call. */
function idleText({ durationMs, time, upstream }: RequestRecord): string {
  if (time === null || upstream?.length !== 0 || time.unplacedCalls > 0 || time.idleMs < durationMs / 2) return '';
  return `, ${time.idleMs.toFixed(0)} ms idle: waiting for a timer, for I/O that is not instrumented, or for the client`;
}

/** Fields for JSON loggers; pino writes its own `time`. */
export function slowFields({ time, unit, ...fields }: RequestRecord, withUnit: boolean): object {
  return { event: 'slow_request', ...fields, requestTime: time, ...(withUnit ? { unit } : {}) };
}

/** Slow requests of one kind have their route in common, and the resolver where a GraphQL server answers. */
export const nameSlowKind = ({ method, route, handler }: RequestRecord): string => `${method} ${route} ${handler}`;

export function slowAgainText(repeated: readonly Repeated<RequestRecord>[]): string {
  const routes = repeated.map(({ first, count, maxMs }) => {
    const route = first === null ? 'other routes' : nameRoute(first);
    return `${count} × ${route}, up to ${maxMs.toFixed(0)} ms`;
  });
  const all = repeated.reduce((sum, { count }) => sum + count, 0);
  return `${counted(all, 'more slow request')}: ${routes.join('; ')}`;
}

export function slowAgainFields(repeated: readonly Repeated<RequestRecord>[]): object {
  const routes = repeated.map(({ first, count, totalMs, maxMs }) => {
    const { method, route, handler } = first ?? { method: null, route: null, handler: null };
    return { method, route, handler, count, totalMs, maxMs };
  });
  return { event: 'slow_requests_repeated', routes };
}
