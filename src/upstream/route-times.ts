import type { RequestTimer } from './request-calls.js';

/** Sums over the requests of one route, milliseconds; but for the first two of those that completed. */
export class RouteTimes {
  /** Aborted ones included: they were work, too. */
  ended = 0;
  durationMs = 0;
  count = 0;
  upstreamMs = 0;
  busyMs = 0;
  /** Of `busyMs`: a call was under way. */
  upstreamBusyMs = 0;

  add({ upstreamMs, busyMs, upstreamBusyMs }: RequestTimer): void {
    this.count += 1;
    this.upstreamMs += upstreamMs;
    this.busyMs += busyMs + upstreamBusyMs;
    this.upstreamBusyMs += upstreamBusyMs;
  }
}
