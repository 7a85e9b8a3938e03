import type { ServerResponse } from 'node:http';
import type { RequestState } from '../core/request-state.js';
import type { MonotonicClock } from '../core/clock.js';

/**
 * Adds `Server-Timing: total;dur=…` (milliseconds until the headers are written, W3C Server Timing) to a response.
 * `writeHead` is the one place that every way of answering passes, on HTTP/1 and HTTP/2.
 */
export function addServerTiming(state: RequestState, nowMs: MonotonicClock): void {
  const response = state.response;
  if (response === null) return;
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
  response.writeHead = (...head: unknown[]) => {
    if (!response.headersSent) {
      const own = `total;dur=${(nowMs() - state.startedMs).toFixed(1)}`;
      const existing = response.getHeader('server-timing');
      response.setHeader('server-timing', existing === undefined ? own : `${String(existing)}, ${own}`);
    }
    return writeHead(...head);
  };
}
