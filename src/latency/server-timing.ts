import type { MonotonicClock } from '../core/clock.js';
import type { RequestState } from '../core/request-state.js';
import type { Platform } from '../http/platform.js';

/** Adds `Server-Timing: total;dur=…` (milliseconds until the headers are written, W3C Server Timing) to a response. */
export function addServerTiming(
  { response, startedMs }: RequestState,
  platform: Platform,
  nowMs: MonotonicClock,
): void {
  if (response === null) return;
  platform.beforeHead(response, () => {
    const own = `total;dur=${(nowMs() - startedMs).toFixed(1)}`;
    const existing = response.getHeader('server-timing');
    response.setHeader('server-timing', existing === undefined ? own : `${String(existing)}, ${own}`);
  });
}
