import { pushBounded } from '../core/push-bounded.js';
import { routeName, type Route } from '../core/route.js';
import type { Estimate } from '../core/snapshot.js';
import { inTurns, type Steps } from '../core/turns.js';
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
/** An estimate takes some milliseconds, and is good for so many windows. */
const FRESH_WINDOWS = 30;

interface Window {
  readonly busyMs: number;
  /** Pairs, as there are hundreds of windows: the number of a route, in the order of all, and how many of its requests have ended. */
  readonly ended: Uint32Array;
}

/** How busy the loop was in each second, and how many requests of each route have ended in it. */
export class BusyWindows {
  private readonly windows: Window[] = [];
  /** Requests that had ended by the last tick, of each route. Routes are never taken away, so they keep their number. */
  private readonly counted: number[] = [];
  private tickedMs = 0;
  private idleMs = 0;
  private estimates: ReadonlyMap<Route, Estimate> = new Map();
  private ticks = 0;
  private isEstimating = false;

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
    const pairs: number[] = [];
    for (const [number, { ended }] of [...this.routes.values()].entries()) {
      const before = this.counted[number] ?? 0;
      if (ended > before) pairs.push(number, ended - before);
      this.counted[number] = ended;
    }
    const busyMs = Math.max(0, nowMs - this.tickedMs - (idleMs - this.idleMs));
    pushBounded(this.windows, { busyMs, ended: Uint32Array.from(pairs) }, MAX_WINDOWS);
    this.tickedMs = nowMs;
    this.idleMs = idleMs;
    this.ticks += 1;
    if (this.windows.length >= MIN_WINDOWS && this.ticks % FRESH_WINDOWS === 0) void this.estimate();
  }

  /** Busy milliseconds of a request of the route; null while it cannot be told. */
  estimateOf(route: Route): Estimate | null {
    return this.estimates.get(route) ?? null;
  }

  private async estimate(): Promise<void> {
    if (this.isEstimating) return;
    this.isEstimating = true;
    this.estimates = await inTurns(this.estimated());
    this.isEstimating = false;
  }

  private *estimated(): Steps<Map<Route, Estimate>> {
    const numbered = [...this.routes].map(([route, { busyMs }], number) => ({ route, busyMs, number }));
    const apart = numbered.toSorted((a, b) => b.busyMs - a.busyMs).slice(0, MAX_ROUTES);
    const columns = new Map(apart.map(({ number }, column) => [number, column]));
    const windows = this.windows.map(({ busyMs, ended }) => {
      // The last are the others together.
      const counts = Array.from({ length: apart.length + 1 }, () => 0);
      for (let i = 0; i < ended.length; i += 2) counts[columns.get(ended[i]!) ?? apart.length]! += ended[i + 1]!;
      return { busyMs, counts };
    });
    const estimates = new Map<Route, Estimate>();
    for (const [index, estimate] of (yield* estimateOwnCpu(windows)).entries()) {
      const route = apart[index]?.route;
      if (estimate === null || route === undefined) continue;
      const inseparable = estimate.with.map((other) =>
        other < apart.length ? routeName(apart[other]!.route) : 'other routes',
      );
      estimates.set(route, { mean: estimate.mean, ci: estimate.ci, from: 'regression', with: inseparable });
    }
    return estimates;
  }
}
