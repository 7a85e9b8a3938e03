import type { RequestRecord } from '../core/record.js';
import { counted, nameOf, sizeOf } from './names.js';
import type { Repeated } from './repeats.js';

/** A slow request as a person wants to read it. */
export function slowText(record: RequestRecord): string {
  const { durationMs, status, blockedMs, delayedMs, note, id } = record;
  const blocked = blockedMs < 1 ? '' : `, blocked the event loop for ${blockedMs.toFixed(0)} ms`;
  const delayed = delayedMs < 1 ? '' : `, waited ${delayedMs.toFixed(0)} ms for others' blocks`;
  return `${nameOf(record)} took ${durationMs.toFixed(0)} ms: status ${status}${blocked}${delayed}${idleOf(record)}${sizeOf(note)}, id ${id}`;
}

/** Where it was most of the time, and no upstream call is known. */
function idleOf({ durationMs, time, upstream }: RequestRecord): string {
  if (time === null || upstream?.length !== 0 || time.unplacedCalls > 0 || time.idleMs < durationMs / 2) return '';
  return `, ${time.idleMs.toFixed(0)} ms of it idle: waiting for something that is not heard, or for the client to send or read (docs/upstream.md)`;
}

/** The same for JSON loggers: `time` is when pino wrote the line. */
export function slowFields({ time, ...fields }: RequestRecord): object {
  return { event: 'slow_request', ...fields, requestTime: time };
}

/** Slow requests of one kind have their route in common. */
export const kindOfSlow = ({ method, route }: RequestRecord): string => `${method} ${route}`;

/** One line for all that were slow again. */
export function slowAgainText(repeated: readonly Repeated<RequestRecord>[]): string {
  const routes = repeated.map(({ first, count, maxMs }) => {
    const who = first === null ? 'other routes' : nameOf({ ...first, handler: null });
    return `${who} ${count === 1 ? 'once' : `${count} times`}, up to ${maxMs.toFixed(0)} ms`;
  });
  const all = repeated.reduce((sum, { count }) => sum + count, 0);
  return `${counted(all, 'more slow request')}: ${routes.join('; ')}`;
}

/** The same for JSON loggers. */
export function slowAgainFields(repeated: readonly Repeated<RequestRecord>[]): object {
  const routes = repeated.map(({ first, count, totalMs, maxMs }) => {
    const { method, route, handler } = first ?? { method: null, route: null, handler: null };
    return { method, route, handler, count, totalMs, maxMs };
  });
  return { event: 'slow_requests_repeated', routes };
}
