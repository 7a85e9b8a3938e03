import type { ServerResponse } from 'node:http';
import type { MonotonicClock } from '../core/clock.js';
import { TIME_SO_FAR } from '../core/request-time.js';
import type { RequestState } from '../core/request-state.js';

/**
 * Adds `Server-Timing` (W3C) to a response, milliseconds until its head is written: `total`, and of it `up` (upstream calls were
 * under way), `own` (the event loop was busy) and `wait` (it waited for something else).
 */
export function addServerTiming(state: RequestState, nowMs: MonotonicClock): void {
  const { response, startedMs, owner } = state;
  if (response === null) return;
  beforeHead(response, () => {
    const parts = { total: nowMs() - startedMs, ...partsOf(TIME_SO_FAR.get(owner)?.(state) ?? null) };
    const ours = Object.entries(parts).map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`);
    const existing = response.getHeader('server-timing');
    response.setHeader('server-timing', [...(existing === undefined ? [] : [String(existing)]), ...ours].join(', '));
  });
}

const partsOf = (time: { busyMs: number; upstreamMs: number; idleMs: number } | null): Record<string, number> =>
  time === null ? {} : { own: time.busyMs, up: time.upstreamMs, wait: time.idleMs };

/** Calls `hear` once, just before the head is written: `writeHead` is the one place that every way of answering passes, on HTTP/1 and HTTP/2. */
function beforeHead(response: ServerResponse, hear: () => void): void {
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
  let heard = false;
  response.writeHead = (...head: unknown[]) => {
    if (!heard && !response.headersSent) {
      heard = true;
      hear();
    }
    return writeHead(...head);
  };
}
