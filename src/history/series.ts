import type { HistoryPoint, HistorySeries, TimeRange } from '../core/history.js';
import type { HistorySource } from './reader.js';
import { bucketOf, ruleOf, TIERS, type Tier } from './rows/tiers.js';
import { RouteWindow } from './rows/window.js';

/** The finest tier that reaches back to `from`, or did so a step ago: the clock goes on while somebody asks. */
export function tierFor(from: number, nowMs: number): Tier {
  return TIERS.find(({ keepMs, stepMs }) => from >= nowMs - keepMs - stepMs)?.tier ?? '1h';
}

export const overOf = ({ over }: RouteWindow): { ms: number; count: number }[] =>
  [...over].map(([ms, count]) => ({ ms, count })).toSorted((a, b) => a.ms - b.ms);

/** A series of one route, or of all. Steps begin at whole multiples of their length, the first at or before `from`. */
export async function seriesOf(
  source: HistorySource,
  range: TimeRange & { stepMs?: number },
  route: string | null,
  nowMs: number,
): Promise<HistorySeries> {
  const tier = tierFor(range.from, nowMs);
  const unitMs = ruleOf(tier).stepMs;
  const stepMs = Math.max(1, Math.round((range.stepMs ?? unitMs) / unitMs)) * unitMs;
  const steps = new Map<number, RouteWindow>();
  await source.read(tier, { from: bucketOf(range.from, stepMs), to: range.to }, ({ at, window }) => {
    const step = bucketOf(at, stepMs);
    let sums = steps.get(step);
    if (sums === undefined) steps.set(step, (sums = new RouteWindow()));
    const found = window.window(route);
    if (found !== null) sums.merge(found);
  });
  const points = [...steps].toSorted(([a], [b]) => a - b).map(([at, window]) => pointOf(at, window));
  return { stepMs, points };
}

function pointOf(at: number, window: RouteWindow): HistoryPoint {
  const { count, errors, aborted, blockedMs, timed, upstreamMs } = window;
  return {
    at,
    count,
    errors,
    aborted,
    durationMs: window.histogram.figures(),
    over: overOf(window),
    blockedMs,
    upstreamMs: timed === 0 ? 0 : upstreamMs / timed,
  };
}
