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

/** Sums of all requests of a route, milliseconds. */
interface Waited {
  /** At least one call was under way. */
  upstreamMs: number;
  /** The event loop was busy with others, so that an answer may have lain there already. */
  loopWaitMs: number;
  /** The sum of the calls to each target. */
  readonly wallMs: Map<string, number>;
}

/** The upstreams that routes have waited for since the last call. */
export class RouteWaits {
  private before = new Map<string, Waited>();
  private fresh = new Map<string, Waited>();

  next(routes: readonly RouteSnapshot[]): void {
    const now = sumWaits(routes);
    this.fresh = new Map([...now].map(([route, waited]) => [route, since(this.before.get(route), waited)]));
    this.before = now;
  }

  /** The wait of a route (`'GET /users/:id'`) whose requests took `totalMs`; null where no upstream matters. */
  of(route: string, totalMs: number): RouteWait | null {
    const { upstreamMs, loopWaitMs, wallMs } = this.fresh.get(route) ?? { upstreamMs: 0, loopWaitMs: 0, wallMs: [] };
    const [most] = [...wallMs].toSorted(([, a], [, b]) => b - a);
    if (most === undefined || totalMs <= 0) return null;
    const sumMs = [...wallMs].reduce((sum, [, ms]) => sum + ms, 0);
    // Calls at the same time count once in `upstreamMs`: each target has its part of that.
    const share = Math.min(1, (upstreamMs - Math.max(0, loopWaitMs)) / totalMs) * (most[1] / sumMs);
    return share >= MIN_SHARE ? { target: most[0], share } : null;
  }
}

function sumWaits(routes: readonly RouteSnapshot[]): Map<string, Waited> {
  const all = new Map<string, Waited>();
  for (const { method, route, count, aborted, time, upstream } of routes) {
    // Versions of a handler may have one pattern.
    const waited = getOrAdd(all, `${method} ${route}`, () => ({ upstreamMs: 0, loopWaitMs: 0, wallMs: new Map() }));
    const completed = count - aborted;
    waited.upstreamMs += (time?.upstreamMs ?? 0) * completed;
    waited.loopWaitMs += (time?.loopWaitMs ?? 0) * completed;
    for (const { target, wallMs } of upstream)
      waited.wallMs.set(target, (waited.wallMs.get(target) ?? 0) + wallMs * count);
  }
  return all;
}

function since(before: Waited | undefined, now: Waited): Waited {
  if (before === undefined) return now;
  return {
    upstreamMs: now.upstreamMs - before.upstreamMs,
    loopWaitMs: now.loopWaitMs - before.loopWaitMs,
    wallMs: new Map([...now.wallMs].map(([target, ms]) => [target, ms - (before.wallMs.get(target) ?? 0)])),
  };
}
