import type { RequestTimer } from './request-timer.js';

/** Sums over the requests of one route, milliseconds. */
export class RouteTimes {
  /** All requests, aborted ones included. */
  ended = 0;
  durationMs = 0;
  /** Requests that completed; the sums below are theirs. */
  count = 0;
  upstreamMs = 0;
  poolWaitMs = 0;
  busyMs = 0;
  /** The part of `busyMs` in which a call was under way. */
  upstreamBusyMs = 0;

  add({ upstreamMs, poolWaitMs, busyMs, upstreamBusyMs }: RequestTimer): void {
    this.count += 1;
    this.upstreamMs += upstreamMs;
    this.poolWaitMs += poolWaitMs;
    this.busyMs += busyMs + upstreamBusyMs;
    this.upstreamBusyMs += upstreamBusyMs;
  }
}
