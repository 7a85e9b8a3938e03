import { entryOf } from '../core/entry-of.js';
import type { HistorySeries, TimeRange } from '../core/history.js';
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
    const sums = entryOf(steps, bucketOf(at, stepMs), () => new RouteWindow());
    const found = window.window(route);
    if (found !== null) sums.merge(found);
  });
  const points = [...steps]
    .toSorted(([a], [b]) => a - b)
    .map(([at, window]) => {
      const figures = figuresOf(window);
      return { at, ...figures, upstreamMs: figures.upstreamMs ?? 0 };
    });
  return { stepMs, points };
}

/** What is told of requests, wherever it is; the mean of upstreams is null where nothing tells. */
export function figuresOf(window: RouteWindow) {
  const { count, errors, aborted, histogram, blockedMs, timed, upstreamMs } = window;
  return {
    count,
    errors,
    aborted,
    durationMs: histogram.figures(),
    over: overOf(window),
    blockedMs,
    upstreamMs: timed === 0 ? null : upstreamMs / timed,
  };
}
