import { inOneTurn } from '../core/turns.js';
import type { PodMinute } from '../ports/history.js';
import type { Identity } from './reader.js';
import type { Bucket } from './rows/memory.js';
import type { HistoryRow } from './rows/row.js';
import { MINUTE_MS } from './rows/tiers.js';
import { encodeWindow, EncodedWindow } from './rows/window-codec.js';
import { RouteWindow, SiteWindow } from './rows/window.js';

/** Routes of a pod's own part: those that took most time. */
const MAX_ROUTES = 40;

/** Measures what a pod publishes of itself. */
export class LastMinute {
  private known: PodMinute | null = null;

  constructor(private readonly own: Identity) {}

  /** `ended`: buckets that have ended since the minute before. */
  measure(ended: readonly Bucket[], nowMs: number): PodMinute {
    const last = ended.findLast(({ tier }) => tier === '1m');
    // A tick just before the minute's end ends none: the one before is still the last.
    if (last === undefined && this.known !== null) return this.known;
    const window = last === undefined ? null : new EncodedWindow(last.data);
    const { count, errors, histogram } = window?.window(null) ?? new RouteWindow();
    const { observedMs = 0, busyMs = 0, throttledMs = 0 } = window?.process ?? {};
    const divide = (ms: number): number => (observedMs === 0 ? 0 : ms / observedMs);
    const minute = {
      ...this.own,
      at: last === undefined ? nowMs : Math.max(last.at + MINUTE_MS, nowMs - MINUTE_MS),
      requests: count,
      errors,
      p95Ms: histogram.quantileMs(0.95),
      loopBusy: divide(busyMs),
      throttled: divide(throttledMs),
      memoryBytes: process.memoryUsage.rss(),
    };
    if (last !== undefined) this.known = minute;
    return minute;
  }
}

/** Enough to see whether one pod is the odd one: a tenth of its bytes. */
export function withoutDistributions(row: HistoryRow): HistoryRow {
  const window = new EncodedWindow(row.data);
  const site = new SiteWindow();
  site.process.add(window.process);
  const all = window.routeNames.map((name) => ({ name, sums: window.sums(name)! }));
  for (const { name, sums } of all.toSorted((a, b) => b.sums.sumMs - a.sums.sumMs).slice(0, MAX_ROUTES)) {
    sums.targets.clear();
    site.routeOf(name).add(sums);
  }
  return { ...row, data: inOneTurn(encodeWindow(site)) };
}
