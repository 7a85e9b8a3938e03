import { entryOf } from '../core/entry-of.js';
import type { HistoryPoint, HistorySeries, RangeFigures, TimeRange } from '../ports/history.js';
import type { HistorySource } from './reader.js';
import { bucketOf, TIERS, type Tier, type TierRule } from './rows/tiers.js';
import { type RouteSums, RouteWindow } from './rows/window.js';

/** Tiers that reach back to `from`, or did so a bucket ago: the clock goes on while somebody asks. The finest first. */
const tiersFor = (from: number, nowMs: number): TierRule[] =>
  TIERS.filter(({ tier, keepMs, stepMs }) => tier === '1h' || from >= nowMs - keepMs - stepMs);

export const tierFor = (from: number, nowMs: number): Tier => tiersFor(from, nowMs)[0]!.tier;

/** The finest tier, and a multiple of its step, at least what is asked for; a coarser tier where only it has the first step as a whole. */
function stepsFor({ from, stepMs: asked }: TimeRange & { stepMs?: number }, nowMs: number): readonly [Tier, number] {
  const stepOf = ({ stepMs }: TierRule): number => Math.ceil((asked ?? stepMs) / stepMs) * stepMs;
  const [finest] = tiersFor(from, nowMs);
  const stepMs = stepOf(finest!);
  const whole = tiersFor(bucketOf(from, stepMs), nowMs).find((rule) => stepOf(rule) === stepMs);
  return [(whole ?? finest!).tier, stepMs];
}

export const overOf = ({ over }: RouteSums): { ms: number; count: number }[] =>
  [...over].map(([ms, count]) => ({ ms, count })).toSorted((a, b) => a.ms - b.ms);

/** A series of one route, or of all. Steps begin at whole multiples of their length, the first at or before `from`. */
export async function seriesOf(
  source: HistorySource,
  range: TimeRange & { stepMs?: number },
  route: string | null,
  nowMs: number,
): Promise<HistorySeries> {
  const [tier, stepMs] = stepsFor(range, nowMs);
  const steps = new Map<number, RouteWindow>();
  await source.read(tier, { from: bucketOf(range.from, stepMs), to: range.to }, ({ at, window }) => {
    const sums = entryOf(steps, bucketOf(at, stepMs), () => new RouteWindow());
    const found = window.window(route);
    if (found !== null) sums.merge(found);
  });
  const points = [...steps].toSorted(([a], [b]) => a - b).map(([at, window]) => pointOf(at, window));
  return { stepMs, points };
}

export function pointOf(at: number, window: RouteWindow): HistoryPoint {
  const figures = figuresOf(window);
  return { at, ...figures, upstreamMs: figures.upstreamMs ?? 0 };
}

/** Figures of requests, wherever they are told; the mean of upstreams is null where nothing tells. */
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

/** Figures with the parts of a mean request. */
export function rangeFigures(window: RouteWindow): RangeFigures {
  const { timed, busyMs, ownOf, ownMs } = window;
  return {
    ...figuresOf(window),
    ownMs: ownOf === 0 ? null : ownMs / ownOf,
    waitMs: timed === 0 || ownOf === 0 ? null : Math.max(0, busyMs / timed - ownMs / ownOf),
  };
}
