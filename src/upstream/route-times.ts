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
  // Of those that were alone in flight: their busy time is their own.
  aloneCount = 0;
  aloneMs = 0;
  aloneSquares = 0;

  add({ upstreamMs, busyMs, upstreamBusyMs, alone }: RequestTimer): void {
    const busy = busyMs + upstreamBusyMs;
    this.count += 1;
    this.upstreamMs += upstreamMs;
    this.busyMs += busy;
    this.upstreamBusyMs += upstreamBusyMs;
    if (!alone) return;
    this.aloneCount += 1;
    this.aloneMs += busy;
    this.aloneSquares += busy * busy;
  }
}
