import { getOrAdd } from '../core/get-or-add.js';
import type { RouteSnapshot } from '../core/snapshot.js';

/** The upstream that a route has waited for most, and the share of the route's time in which it did. */
export interface RouteWait {
  readonly target: string;
  /** 0 to 1 */
  readonly share: number;
}

/** An upstream matters to a route that spends half of its time there. */
const MIN_SHARE = 0.5;

/** Sums over requests that ended with an answer; of calls over all. */
interface Waited {
  count: number;
  /** At least one call was under way. */
  upstreamMs: number;
  /** The event loop was busy, so that an answer may have lain there already. */
  busyMs: number;
  /** The route's own part of `busyMs`. */
  ownMs: number;
  /** The sum of the calls to each target. */
  readonly wallMs: Map<string, number>;
}

/** The upstreams that routes have waited for since the last call. */
export class RouteWaits {
  private before = new Map<string, Waited>();
  private fresh = new Map<string, Waited>();

  next(routes: readonly RouteSnapshot[]): void {
    const now = waitedBy(routes);
    this.fresh = new Map([...now].map(([route, waited]) => [route, since(this.before.get(route), waited)]));
    this.before = now;
  }

  /** The wait of a route (`'GET /users/:id'`) whose requests took `totalMs`; null where no upstream matters. */
  of(route: string, totalMs: number): RouteWait | null {
    const waited = this.fresh.get(route);
    if (waited === undefined || totalMs <= 0) return null;
    let [target, mostMs, sumMs] = ['', 0, 0];
    for (const [name, ms] of waited.wallMs) {
      sumMs += ms;
      if (ms > mostMs) [target, mostMs] = [name, ms];
    }
    if (sumMs === 0) return null;
    // The part of the wait for the loop that fell into calls is unknown: all of it is subtracted.
    const loopWaitMs = Math.max(0, waited.busyMs - waited.ownMs);
    // Calls at the same time count once in `upstreamMs`: each target has its part of that.
    const share = Math.min(1, (waited.upstreamMs - loopWaitMs) / totalMs) * (mostMs / sumMs);
    return share < MIN_SHARE ? null : { target, share };
  }
}

function waitedBy(routes: readonly RouteSnapshot[]): Map<string, Waited> {
  const all = new Map<string, Waited>();
  for (const { method, route, count, aborted, time, upstream } of routes) {
    if (count === 0) continue;
    // Null while all have left: their calls are in `upstream`, and must not be taken for those of a later window.
    const { upstreamMs = 0, loopWaitMs = 0, ownCpuMs = null } = time ?? {};
    const completed = count - aborted;
    const ownMs = (ownCpuMs?.mean ?? 0) * completed;
    // Versions of a handler may have one pattern.
    const waited = getOrAdd(all, `${method} ${route}`, () => ({
      count: 0,
      upstreamMs: 0,
      busyMs: 0,
      ownMs: 0,
      wallMs: new Map(),
    }));
    waited.count += completed;
    waited.upstreamMs += upstreamMs * completed;
    waited.busyMs += loopWaitMs * completed + ownMs;
    waited.ownMs += ownMs;
    for (const { target, wallMs } of upstream) {
      waited.wallMs.set(target, (waited.wallMs.get(target) ?? 0) + wallMs * count);
    }
  }
  return all;
}

function since(before: Waited | undefined, now: Waited): Waited {
  if (before === undefined) return now;
  const count = now.count - before.count;
  return {
    count,
    upstreamMs: now.upstreamMs - before.upstreamMs,
    busyMs: now.busyMs - before.busyMs,
    // The estimate of a request's own time improves, so its past is computed anew.
    ownMs: now.count === 0 ? 0 : (now.ownMs * count) / now.count,
    wallMs: new Map([...now.wallMs].map(([target, ms]) => [target, ms - (before.wallMs.get(target) ?? 0)])),
  };
}
