import type { HistoryPoint, HistoryReader } from '../ports/history.js';
import { rounded } from './route-rows.js';
import { MAX_POINTS, type Past, type Point, type Scope } from './view.js';

const STEP_MS = 5 * 60_000;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
export const NO_PAST: Past = { rows: [], releases: [] };

/** The last hours of one route or, with null, of all, beside the same hours of last week. `scope`: of one pod, or of all. */
export async function readPast(history: HistoryReader | null, scope: Scope, route: string | null): Promise<Past> {
  if (history === null) return NO_PAST;
  const options = { route, own: scope === 'pod' };
  const to = Date.now();
  const from = to - MAX_POINTS * STEP_MS;
  const lastWeek = { from: from - WEEK_MS, to: to - WEEK_MS, stepMs: HOUR_MS };
  const { points } = await history.history(lastWeek, options);
  const hours = new Map(points.map((point) => [point.at + WEEK_MS, point]));
  return readPoints(history, STEP_MS, options, (at) => hours.get(Math.floor(at / HOUR_MS) * HOUR_MS));
}

/** The last steps of a history as points of a chart, and the releases that came in them. */
export async function readPoints(
  history: HistoryReader,
  wantedMs: number,
  options: { readonly route: string | null; readonly own: boolean },
  findLastWeek: (at: number) => HistoryPoint | undefined = () => undefined,
): Promise<Past> {
  const to = Date.now();
  const range = { from: to - MAX_POINTS * wantedMs, to, stepMs: wantedMs };
  const { points, stepMs, releases } = await history.history(range, options);
  // Other pods write once a minute: the step that runs has this pod's requests alone.
  const whole = history.shared && !options.own ? points.filter(({ at }) => at + stepMs <= to) : points;
  const rows = whole.slice(-MAX_POINTS).map(({ at, count, errors, durationMs: { p50, p95, p99 } }): Point => {
    // The last step has not ended.
    const seconds = Math.max(1_000, Math.min(stepMs, to - at)) / 1_000;
    const then = findLastWeek(at);
    const known = (ms: number, requests: number | undefined = 0): number | null =>
      requests === 0 ? null : rounded(ms);
    return [
      at,
      rounded(count / seconds),
      rounded(errors / seconds),
      ...([known(p50, count), known(p95, count), known(p99, count)] as const),
      then === undefined ? null : rounded(then.count / (HOUR_MS / 1_000)),
      known(then?.durationMs.p95 ?? 0, then?.count),
    ];
  });
  return { rows, releases };
}
