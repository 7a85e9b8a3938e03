import type { HistoryReader } from '../ports/history.js';
import type { PerfApplication } from '../request/application.js';
import { Refreshed } from './refreshed.js';
import { rounded } from './route-rows.js';
import { MAX_POINTS, type Past, type PastRow } from './view.js';

const STEP_MS = 5 * 60_000;
const MIN_STEP_MS = 60_000;
const HOUR_MS = 3_600_000;
const WEEK_MS = 7 * 24 * HOUR_MS;
/** Points of the tier that a store keeps as well: what was before a restart, and of other pods. */
const PAST_MS = MAX_POINTS * STEP_MS;
/** The whole, and routes that viewers have opened. */
const MAX_KNOWN = 16;
const NOTHING: Past = { rows: [], releases: [] };

/** The last hours of the whole and of single routes. */
export class PastFigures {
  private readonly known = new Map<string | null, Refreshed<Past>>();

  constructor(
    private readonly host: Pick<PerfApplication, 'report' | 'nowMs'>,
    private readonly history: HistoryReader | null,
  ) {}

  /** Figures of one route, or of all. */
  refresh(route: string | null): Refreshed<Past> {
    const load = (): Promise<Past> => read(this.history, route, Date.now());
    const past = this.known.get(route) ?? new Refreshed(this.host, 'the history', NOTHING, load);
    // The one that was read last is the last to go.
    this.known.delete(route);
    this.known.set(route, past);
    if (this.known.size > MAX_KNOWN) this.known.delete(this.known.keys().next().value!);
    return past;
  }
}

async function read(history: HistoryReader | null, route: string | null, to: number): Promise<Past> {
  if (history === null) return NOTHING;
  const from = to - PAST_MS;
  const { stepMs, points } = await history.history({ from, to, stepMs: STEP_MS }, { route });
  const lastWeek = await history.history({ from: from - WEEK_MS, to: to - WEEK_MS, stepMs: HOUR_MS }, { route });
  const hours = new Map(lastWeek.points.map((point) => [point.at, point]));
  const rows = points.slice(-MAX_POINTS).map(({ at, count, errors, durationMs: { p50, p95, p99 } }): PastRow => {
    const known = (value: number): number | null => (count === 0 ? null : rounded(value));
    const perSecond = (value: number, ms: number): number => rounded(value / (ms / 1_000));
    // The last step has not ended.
    const stepped = Math.max(MIN_STEP_MS, Math.min(stepMs, to - at));
    const then = hours.get(Math.floor((at - WEEK_MS) / HOUR_MS) * HOUR_MS);
    return [
      at,
      perSecond(count, stepped),
      perSecond(errors, stepped),
      known(p50),
      known(p95),
      known(p99),
      then === undefined ? null : perSecond(then.count, HOUR_MS),
      then === undefined || then.count === 0 ? null : rounded(then.durationMs.p95),
    ];
  });
  // The first one was there before.
  return { rows, releases: (await history.releases({ from, to })).slice(1) };
}
