import type { HistoryReader, RangeFigures } from '../ports/history.js';
import type { PerfApplication } from '../request/application.js';
import { markOddPods } from './odd-pods.js';
import { Refreshed } from './refreshed.js';
import { rounded } from './route-rows.js';
import { MAX_POINTS, type PodRow, type RouteRow, type TrafficPoint } from './view.js';

const MINUTE_MS = 60_000;
/** Routes of all pods are those of the last hour: no pod knows when the fleet began. */
const SPAN_MS = 60 * MINUTE_MS;

/** All pods, by a shared history. */
export interface FleetFigures {
  readonly pods: PodRow[];
  readonly rows: { readonly row: RouteRow }[];
  readonly overMs: number[];
  readonly totals: { count: number; errors: number; inFlight: number; routes: number };
  readonly traffic: TrafficPoint[];
}

const NOTHING: FleetFigures = {
  pods: [],
  rows: [],
  overMs: [],
  totals: { count: 0, errors: 0, inFlight: 0, routes: 0 },
  traffic: [],
};

export const refreshFleet = (
  host: Pick<PerfApplication, 'report' | 'nowMs'>,
  history: HistoryReader | null,
): Refreshed<FleetFigures> =>
  new Refreshed(host, 'the fleet', NOTHING, async () => (history === null ? NOTHING : read(history, Date.now())));

async function read(history: HistoryReader, now: number): Promise<FleetFigures> {
  const routes = await history.routes({ from: now - SPAN_MS, to: now });
  const overMs = [...new Set([...routes.values()].flatMap(({ over }) => over.map(({ ms }) => ms)))].sort(
    (a, b) => a - b,
  );
  const { points } = await history.history({ from: now - MAX_POINTS * MINUTE_MS, to: now, stepMs: MINUTE_MS });
  const totals = { count: 0, errors: 0, inFlight: 0, routes: routes.size };
  for (const [name, { count, errors }] of routes) {
    // Rows of a resolver's HTTP request count it already.
    if (name.startsWith('GRAPHQL ')) continue;
    totals.count += count;
    totals.errors += errors;
  }
  return {
    pods: markOddPods(await history.pods()),
    rows: [...routes].map(([name, figures]) => ({ row: describeRow(name, figures, overMs) })),
    overMs,
    totals,
    traffic: points.slice(-MAX_POINTS).map(({ at, count, errors, durationMs: { p50, p95, p99 } }): TrafficPoint => {
      const seconds = Math.min(MINUTE_MS, Math.max(1_000, now - at)) / 1_000;
      const known = (ms: number): number | null => (count === 0 ? null : rounded(ms));
      return [at, rounded(count / seconds), rounded(errors / seconds), known(p50), known(p95), known(p99), null, null];
    }),
  };
}

function describeRow(name: string, figures: RangeFigures, overMs: readonly number[]): RouteRow {
  const { count, errors, aborted, durationMs, over, blockedMs, upstreamMs, poolWaitMs, ownMs, waitMs } = figures;
  const { mean, p50, p95, p99, max } = durationMs;
  const row: RouteRow = { id: name, name, count, ms: [mean, p50, p95, p99, max].map(rounded) as RouteRow['ms'] };
  if (errors > 0) row.errors = errors;
  if (aborted > 0) row.aborted = aborted;
  if (blockedMs > 0) row.blockedMs = rounded(blockedMs);
  if (over.some((one) => one.count > 0)) row.over = overMs.map((ms) => over.find((one) => one.ms === ms)?.count ?? 0);
  if (upstreamMs !== null)
    row.time = [
      ownMs === null ? null : rounded(ownMs),
      ...[upstreamMs, poolWaitMs ?? 0, waitMs ?? 0].map(rounded),
    ] as RouteRow['time'] & {};
  return row;
}
