import { entryOf } from '../core/entry-of.js';
import type { PerfSnapshot } from '../core/snapshot.js';

/** The upstream that a route has waited for most, and the share of the route's time in which it did. */
export interface RouteWait {
  readonly target: string;
  /** 0 to 1 */
  readonly share: number;
}

/** An upstream matters to a route that spends half of its time there. */
const MIN_SHARE = 0.5;

interface Waited {
  /** At least one call was under way. */
  upstreamMs: number;
  /** The sum of the calls to each target. */
  readonly wallMs: Map<string, number>;
}

/** What routes have waited for since the last time somebody asked. */
export class RouteWaits {
  private before = new Map<string, Waited>();
  private fresh = new Map<string, Waited>();

  next(snapshot: PerfSnapshot): void {
    const now = waitedBy(snapshot);
    this.fresh = new Map([...now].map(([route, waited]) => [route, since(this.before.get(route), waited)]));
    this.before = now;
  }

  /** Of a route (`'GET /users/:id'`) whose requests took `totalMs`; null where no upstream matters. */
  of(route: string, totalMs: number): RouteWait | null {
    const waited = this.fresh.get(route);
    if (waited === undefined || totalMs <= 0) return null;
    let [target, mostMs, sumMs] = ['', 0, 0];
    for (const [name, ms] of waited.wallMs) {
      sumMs += ms;
      if (ms > mostMs) [target, mostMs] = [name, ms];
    }
    if (sumMs === 0) return null;
    // Calls at the same time count once in `upstreamMs`: each target has its part of that.
    const share = Math.min(1, waited.upstreamMs / totalMs) * (mostMs / sumMs);
    return share < MIN_SHARE ? null : { target, share };
  }
}

function waitedBy({ routes, upstream }: PerfSnapshot): Map<string, Waited> {
  const all = new Map<string, Waited>();
  const of = (route: string): Waited => entryOf(all, route, () => ({ upstreamMs: 0, wallMs: new Map() }));
  for (const { method, route, count, aborted, time } of routes) {
    if (time !== null) of(`${method} ${route}`).upstreamMs += time.upstreamMs * (count - aborted);
  }
  for (const { target, routes: asking } of upstream) {
    for (const { route, wallMs } of asking) {
      const known = of(route).wallMs;
      known.set(target, (known.get(target) ?? 0) + wallMs);
    }
  }
  return all;
}

function since(before: Waited | undefined, { upstreamMs, wallMs }: Waited): Waited {
  if (before === undefined) return { upstreamMs, wallMs };
  const fresh = [...wallMs].map(([target, ms]) => [target, ms - (before.wallMs.get(target) ?? 0)] as const);
  return { upstreamMs: upstreamMs - before.upstreamMs, wallMs: new Map(fresh) };
}
