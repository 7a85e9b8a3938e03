import { PerfError } from '../core/perf.error.js';
import type { DeferOverflow } from './defer.options.js';
import type { Room } from './room.js';

/**
 * Takes room for one item as the overflow policy says: true when it has its room, false when it must be dropped.
 * @throws PERF_ERR_DEFER_FULL with `'reject'`
 */
export function takeRoom(
  room: Room,
  overflow: DeferOverflow,
  dropOldest: () => boolean,
  name: string,
  bytes = 0,
): boolean {
  if (room.take(bytes)) return true;
  if (overflow === 'reject') throw full(name, room);
  if (overflow === 'drop-new') return false;
  while (dropOldest()) if (room.take(bytes)) return true;
  return false;
}

/** What a caller is told when there is no room. */
export function full(name: string, room: Room): PerfError {
  return new PerfError(
    'PERF_ERR_DEFER_FULL',
    `no room for deferred work "${name}": ${waiting(room)}. ` +
      'Answer 503 and let the client come back, raise that bound, or choose another `defer.overflow`.',
  );
}

/** Why new work is dropped, in records and reports. */
export const noRoom = (room: Room): string => waiting(room);

const waiting = (room: Room): string =>
  room.isFull
    ? `${room.limit} were waiting already (defer.maxPending)`
    : `what waits holds nearly ${room.maxBytes} bytes already (defer.maxPendingBytes)`;
