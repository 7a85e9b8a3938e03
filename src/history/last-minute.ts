import type { PodMinute } from '../ports/history.js';
import type { Identity } from './history-store.js';
import { EncodedWindow, encodeWindow } from './rows/encoded-window.js';
import type { Bucket } from './rows/memory.js';
import type { HistoryRow } from './rows/row.js';
import { MINUTE_MS } from './rows/tiers.js';
import { RouteSums, RouteWindow, SiteWindow } from './rows/window.js';

/** A pod publishes its routes with most time. */
const MAX_ROUTES = 40;

/** The row of this process in the fleet's table of pods: the latest minute that has ended. */
export function measureMinute(own: Identity, last: Bucket | undefined, nowMs: number): PodMinute {
  const window = last === undefined ? null : new EncodedWindow(last.data);
  const whole = new RouteWindow();
  const { count, errors, histogram } = window?.addTo(whole, null) ?? whole;
  const { observedMs = 0, busyMs = 0, throttledMs = 0 } = window?.process ?? {};
  const divide = (ms: number): number => (observedMs === 0 ? 0 : ms / observedMs);
  return {
    ...own,
    at: last === undefined ? nowMs : Math.max(last.at + MINUTE_MS, nowMs - MINUTE_MS),
    requests: count,
    errors,
    p95Ms: histogram.quantileMs(0.95),
    loopBusy: divide(busyMs),
    throttled: divide(throttledMs),
    memoryBytes: process.memoryUsage.rss(),
  };
}

/** A tenth of a row's bytes, and enough to find out whether only one pod has changed. */
export function withoutDistributions(row: HistoryRow): HistoryRow {
  const window = new EncodedWindow(row.data);
  const site = new SiteWindow();
  site.process.add(window.process);
  const all = window.routeNames.map((name) => ({ name, sums: window.addTo(new RouteSums(), name) }));
  for (const { name, sums } of all.toSorted((a, b) => b.sums.sumMs - a.sums.sumMs).slice(0, MAX_ROUTES)) {
    sums.targets.clear();
    site.openRoute(name).add(sums);
  }
  return { ...row, data: encodeWindow(site) };
}
