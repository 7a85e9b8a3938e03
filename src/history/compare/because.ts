import { getOrAdd } from '../../core/get-or-add.js';
import type { VerdictReason } from '../../core/verdict.js';
import type { ProcessSums, RouteSums } from '../rows/window.js';

export interface SiteSums {
  readonly process: ProcessSums;
  readonly routes: ReadonlyMap<string, RouteSums>;
}

const MAX_REASONS = 5;
const MIX = 'other shares of the routes';
const UNKNOWN = 'timers, files and clients that are not watched';
const POOL = 'waiting for a connection of a pool';
/** The cause of a wait when no route explains it. */
export const THE_LOOP = 'the event loop';

/** Means per completed request, milliseconds. The rest of `mean` beside `upstream`, `pool` and `busy` is unexplained. `own`: null without samples. */
function computeMeans(sums: RouteSums) {
  const { completed, sumMs, timed, upstreamMs, poolWaitMs, upstreamBusyMs, busyMs, sampled, ownMs, blockedMs } = sums;
  const of = (ms: number, count: number): number => (count === 0 ? 0 : ms / count);
  return {
    mean: of(sumMs, completed),
    // While the loop was busy, it could not have read the upstream's answer: that time is the loop's.
    upstream: of(upstreamMs - upstreamBusyMs, timed),
    pool: of(poolWaitMs, timed),
    busy: of(busyMs, timed),
    own: sampled === 0 ? null : ownMs / sampled,
    blocked: of(blockedMs, completed),
  };
}

/**
 * Splits the change of the mean duration into parts. Parts in the opposite direction are left out; the shares of the others add up to 1.
 * A route on one side only changes the mix. `loop`: name of the cause of waits for the event loop.
 */
export function explainChange(
  before: SiteSums,
  after: SiteSums,
  routes: readonly string[],
  loop = findLoopCause(before, after),
): VerdictReason[] {
  const countAll = ({ routes: of }: SiteSums, from: readonly string[]): number =>
    from.reduce((sum, route) => sum + (of.get(route)?.completed ?? 0), 0);
  const [countBefore, countAfter] = [countAll(before, routes), countAll(after, routes)];
  if (countBefore === 0 || countAfter === 0) return [{ part: 'unexplained', name: UNKNOWN, share: 1 }];
  const parts = new Parts();
  let change = 0;
  for (const route of routes) {
    const [was, is] = [before.routes.get(route), after.routes.get(route)];
    const weightBefore = (was?.completed ?? 0) / countBefore;
    const weightAfter = (is?.completed ?? 0) / countAfter;
    const old = computeMeans((was !== undefined && was.completed > 0 ? was : is)!);
    change += weightAfter * (is === undefined ? 0 : computeMeans(is).mean) - weightBefore * old.mean;
    parts.add('mix', MIX, (weightAfter - weightBefore) * old.mean);
    if (was === undefined || is === undefined || is.completed === 0 || was.completed === 0) continue;
    addRoute(parts, route, weightAfter, was, is, loop);
  }
  return parts.reasons(Math.sign(change));
}

function addRoute(parts: Parts, route: string, weight: number, was: RouteSums, is: RouteSums, loop: string): void {
  const [old, now] = [computeMeans(was), computeMeans(is)];
  const busy = now.busy - old.busy;
  const upstream = now.upstream - old.upstream;
  const pool = now.pool - old.pool;
  // Without samples only measured blocks are known to be the route's own work.
  const own =
    old.own === null || now.own === null ? Math.max(0, Math.min(busy, now.blocked - old.blocked)) : now.own - old.own;
  parts.add('own', route, weight * own);
  parts.add('loop-wait', loop, weight * (busy - own));
  parts.add('unexplained', UNKNOWN, weight * (now.mean - old.mean - busy - upstream - pool));
  parts.add('upstream', POOL, weight * pool);
  for (const [target, ms] of splitByTarget(was, is, upstream)) parts.add('upstream', target, weight * ms);
}

/** Splits the change of upstream time by target, in proportion to the change of the time of each target's calls. */
function splitByTarget(was: RouteSums, is: RouteSums, upstream: number): [string, number][] {
  const names = [...new Set([...was.targets.keys(), ...is.targets.keys()])];
  const changes = names.map((name): [string, number] => {
    const [old, now] = [was.targets.get(name)?.wallMs ?? 0, is.targets.get(name)?.wallMs ?? 0];
    return [name, now / is.completed - old / was.completed];
  });
  const alike = changes.filter(([, ms]) => Math.sign(ms) === Math.sign(upstream));
  const total = alike.reduce((sum, [, ms]) => sum + ms, 0);
  if (total === 0) return upstream === 0 ? [] : [['an upstream', upstream]];
  return alike.map(([name, ms]) => [name, (upstream * ms) / total]);
}

class Parts {
  private readonly all = new Map<string, { part: VerdictReason['part']; name: string; ms: number }>();

  add(part: VerdictReason['part'], name: string, ms: number): void {
    getOrAdd(this.all, `${part} ${name}`, () => ({ part, name, ms: 0 })).ms += ms;
  }

  reasons(direction: number): VerdictReason[] {
    const alike = [...this.all.values()].filter(({ ms }) => ms * direction > 0);
    const total = alike.reduce((sum, { ms }) => sum + ms, 0);
    if (total === 0) return [{ part: 'unexplained', name: UNKNOWN, share: 1 }];
    const sorted = alike
      .map(({ part, name, ms }) => ({ part, name, share: ms / total }))
      .toSorted((a, b) => b.share - a.share);
    const shown = sorted.slice(0, MAX_REASONS);
    const rest = 1 - shown.reduce((sum, { share }) => sum + share, 0);
    if (sorted.length > MAX_REASONS) return [...shown, { part: 'unexplained', name: 'smaller parts', share: rest }];
    // Rounding leaves a rest: shares must add up to 1.
    shown[0]!.share += rest;
    return shown;
  }
}

const THROTTLED_RISE = 0.05;
const HEAP_FULL = 0.85;
const HEAP_RISE = 0.1;
/** A route is the cause if it takes this share of the loop's added busy time. */
const LOOP_SHARE = 0.3;
const MORE_REQUESTS = 1.5;
/** Smaller rises of the loop's busy share have no cause. */
const LOOP_RISE = 0.02;

export function findLoopCause(before: SiteSums, after: SiteSums): string {
  const divideByTime = ({ process }: SiteSums, ms: number): number =>
    process.observedMs === 0 ? 0 : ms / process.observedMs;
  const rise = (ms: (site: SiteSums) => number): number =>
    divideByTime(after, ms(after)) - divideByTime(before, ms(before));
  if (rise(({ process }) => process.throttledMs) >= THROTTLED_RISE) return 'CPU throttling';
  const { heapRatio } = after.process;
  if (heapRatio >= HEAP_FULL && heapRatio - before.process.heapRatio >= HEAP_RISE) return 'memory nearly full';
  const busier = rise(({ process }) => process.busyMs);
  const readWork = (route: string) => (site: SiteSums) => {
    const sums = site.routes.get(route);
    if (sums === undefined) return 0;
    const own = sums.sampled === 0 ? 0 : (sums.ownMs / sums.sampled) * sums.completed;
    return Math.max(own, sums.blockedMs);
  };
  const [loudest] = [...after.routes.keys()]
    .map((route) => ({ route, more: rise(readWork(route)) }))
    .toSorted((a, b) => b.more - a.more);
  if (loudest !== undefined && loudest.more >= Math.max(LOOP_RISE, LOOP_SHARE * busier)) {
    const countRate = (site: SiteSums): number => divideByTime(site, site.routes.get(loudest.route)?.count ?? 0);
    const isFlood = countRate(after) > MORE_REQUESTS * countRate(before) && countRate(before) > 0;
    return isFlood ? `more requests of ${loudest.route}` : loudest.route;
  }
  return busier >= LOOP_RISE ? 'background work' : THE_LOOP;
}
