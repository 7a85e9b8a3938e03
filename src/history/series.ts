import { getOrAdd } from '../core/get-or-add.js';
import type { MarkedSeries, RangeFigures, TimeRange } from '../ports/history.js';
import type { HistorySource } from './history-store.js';
import { startBucket, TIERS, type Tier, type TierRule } from './rows/tiers.js';
import { type RouteSums, RouteWindow } from './rows/window.js';

/** The finest tier that reaches back to `from`. One bucket of tolerance: the clock advances between the caller's `Date.now()` and here. */
const findFinest = (from: number, nowMs: number): TierRule =>
  TIERS.find(({ tier, keepMs, stepMs }) => tier === '1h' || from >= nowMs - keepMs - stepMs)!;

export const findTier = (from: number, nowMs: number): Tier => findFinest(from, nowMs).tier;

/** The step, rounded up to a multiple of the finest tier's, and the coarsest tier that divides it. */
function findSteps({ from, stepMs: asked }: TimeRange & { stepMs?: number }, nowMs: number): readonly [Tier, number] {
  const { stepMs: finestMs } = findFinest(from, nowMs);
  const stepMs = Math.ceil((asked ?? finestMs) / finestMs) * finestMs;
  return [TIERS.findLast((rule) => stepMs % rule.stepMs === 0)!.tier, stepMs];
}

export const listOver = ({ over }: RouteSums): { ms: number; count: number }[] =>
  [...over].map(([ms, count]) => ({ ms, count })).toSorted((a, b) => a.ms - b.ms);

/** A series of one route, or of all. Steps begin at whole multiples of their length, the first at or before `from`. */
export async function readSeries(
  source: HistorySource,
  range: TimeRange & { stepMs?: number },
  route: string | null,
  nowMs: number,
): Promise<MarkedSeries> {
  const [tier, stepMs] = findSteps(range, nowMs);
  const steps = new Map<number, RouteWindow>();
  const cameAt = new Map<string, number>();
  await source.read(tier, { from: startBucket(range.from, stepMs), to: range.to }, () => {
    steps.clear();
    cameAt.clear();
    return ({ at, release, window }) => {
      if (release !== '') cameAt.set(release, Math.min(at, cameAt.get(release) ?? Infinity));
      window.addTo(
        getOrAdd(steps, startBucket(at, stepMs), () => new RouteWindow()),
        route,
      );
    };
  });
  const sorted = [...steps].toSorted(([a], [b]) => a - b);
  const releases = [...cameAt].map(([release, at]) => ({ at, release })).toSorted((a, b) => a.at - b.at);
  return {
    stepMs,
    points: sorted.map(([at, window]) => ({ at, ...computeFigures(window, 0) })),
    releases: releases.filter(({ at }) => at > releases[0]!.at),
  };
}

/** `unmeasured`: the mean for upstreams without a measured request. */
function computeFigures<T>(window: RouteWindow, unmeasured: T) {
  const { count, errors, aborted, histogram, blockedMs, timed, upstreamMs } = window;
  return {
    count,
    errors,
    aborted,
    durationMs: histogram.figures(),
    over: listOver(window),
    blockedMs,
    upstreamMs: timed === 0 ? unmeasured : upstreamMs / timed,
  };
}

export function computeRangeFigures(window: RouteWindow): RangeFigures {
  const { timed, poolWaitMs, busyMs, sampled, ownMs } = window;
  return {
    ...computeFigures(window, null),
    poolWaitMs: timed === 0 ? null : poolWaitMs / timed,
    ownMs: sampled === 0 ? null : ownMs / sampled,
    waitMs: timed === 0 || sampled === 0 ? null : Math.max(0, busyMs / timed - ownMs / sampled),
  };
}
