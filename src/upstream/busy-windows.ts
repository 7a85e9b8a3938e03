import { routeName, type Route } from '../core/route.js';
import type { Estimate } from '../core/snapshot.js';
import { estimateOwnCpu } from './own-cpu.js';
import type { LoopClock } from './request-calls.js';
import type { RouteTimes } from './route-times.js';

/** Length of a window. */
export const WINDOW_MS = 1_000;
/** The last 15 minutes. */
const MAX_WINDOWS = 900;
/** Fewer say too little. */
const MIN_WINDOWS = 120;
/** Routes that are told apart, the heaviest first; the others are one class. */
const MAX_ROUTES = 12;
/** An estimate takes some milliseconds, and is good for so long. */
const FRESH_MS = 30_000;

/** How busy the loop was in each second, and how many requests of each route have ended in it. */
export class BusyWindows {
  private readonly windows: { readonly busyMs: number; readonly ended: ReadonlyMap<Route, number> }[] = [];
  private readonly before = new Map<Route, number>();
  private tickedMs = 0;
  private idleMs = 0;
  private estimates: ReadonlyMap<Route, Estimate> = new Map();
  private estimatedMs = -Infinity;

  constructor(
    private readonly clock: LoopClock,
    private readonly routes: ReadonlyMap<Route, RouteTimes>,
  ) {
    this.begin();
  }

  /** The first window begins: what was before it, as the boot of the application, is no request's work. */
  begin(): void {
    this.tickedMs = this.clock.nowMs();
    this.idleMs = this.clock.idleMs();
  }

  /** Ends a window. */
  tick(): void {
    const [nowMs, idleMs] = [this.clock.nowMs(), this.clock.idleMs()];
    const ended = new Map<Route, number>();
    for (const [route, { ended: count }] of this.routes) {
      const fresh = count - (this.before.get(route) ?? 0);
      if (fresh === 0) continue;
      ended.set(route, fresh);
      this.before.set(route, count);
    }
    this.windows.push({ busyMs: Math.max(0, nowMs - this.tickedMs - (idleMs - this.idleMs)), ended });
    if (this.windows.length > MAX_WINDOWS) this.windows.shift();
    this.tickedMs = nowMs;
    this.idleMs = idleMs;
  }

  /** Busy milliseconds of a request of the route; null while it cannot be told. */
  estimateOf(route: Route): Estimate | null {
    if (this.clock.nowMs() - this.estimatedMs > FRESH_MS) this.estimate();
    return this.estimates.get(route) ?? null;
  }

  private estimate(): void {
    this.estimatedMs = this.clock.nowMs();
    if (this.windows.length < MIN_WINDOWS) return;
    const heaviestFirst = [...this.routes].toSorted(([, a], [, b]) => b.busyMs - a.busyMs).map(([route]) => route);
    const apart = heaviestFirst.slice(0, MAX_ROUTES);
    const others = heaviestFirst.slice(MAX_ROUTES);
    const countIn = (ended: ReadonlyMap<Route, number>) => (route: Route) => ended.get(route) ?? 0;
    const windows = this.windows.map(({ busyMs, ended }) => {
      const count = countIn(ended);
      return { busyMs, counts: [...apart.map(count), others.reduce((sum, route) => sum + count(route), 0)] };
    });
    const estimates = new Map<Route, Estimate>();
    estimateOwnCpu(windows).forEach((estimate, index) => {
      const route = apart[index];
      if (estimate === null || route === undefined) return;
      const inseparable = estimate.with.map((other) =>
        other < apart.length ? routeName(apart[other]!) : 'other routes',
      );
      estimates.set(route, { mean: estimate.mean, ci: estimate.ci, from: 'regression', with: inseparable });
    });
    this.estimates = estimates;
  }
}
