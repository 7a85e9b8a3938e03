import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { MonotonicClock } from '../core/clock.js';
import type { RequestTime } from '../core/record.js';
import type { RouteTimeFigures } from '../ports/route-time.js';
import type { RequestState } from '../request/request-state.js';

const HEADER = 'server-timing';

/** Adds `Server-Timing` (W3C): milliseconds until the head is written, and of them `own`, `up`stream, other `wait`. */
export function addServerTiming(state: RequestState, nowMs: MonotonicClock, time: RouteTimeFigures | null): void {
  const { response, startedMs } = state;
  if (response === null) return;
  beforeHead(response, (existing) => {
    const parts = { total: nowMs() - startedMs, ...splitTime(time?.splitSoFar(state) ?? null) };
    const ours = Object.entries(parts).map(([name, ms]) => `${name};dur=${ms.toFixed(1)}`);
    return [...(existing === undefined ? [] : [String(existing)]), ...ours].join(', ');
  });
}

const splitTime = (time: RequestTime | null): Record<string, number> =>
  time === null ? {} : { own: time.busyMs, up: time.upstreamMs, wait: time.idleMs + time.poolWaitMs };

/** Calls `timing` once, just before the head is written: every way of answering passes `writeHead`. */
function beforeHead(response: ServerResponse, timing: (existing: OutgoingHttpHeader | undefined) => string): void {
  const writeHead = response.writeHead.bind(response) as (...head: unknown[]) => ServerResponse;
  let added = false;
  response.writeHead = (...head: unknown[]) => {
    if (!added && !response.headersSent) {
      added = true;
      const given = readHeaders(head.at(-1));
      const name = Object.keys(given).find((key) => key.toLowerCase() === HEADER);
      if (name === undefined) response.setHeader(HEADER, timing(response.getHeader(HEADER)));
      else head[head.length - 1] = { ...given, [name]: timing(given[name]) };
    }
    return writeHead(...head);
  };
}

const readHeaders = (given: unknown): OutgoingHttpHeaders =>
  typeof given === 'object' && !Array.isArray(given) ? { ...given } : {};
