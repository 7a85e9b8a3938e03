import { Histogram } from '../../core/histogram.js';

/** Calls to one upstream. */
export interface TargetSums {
  calls: number;
  wallMs: number;
}

/** Sums over the requests of one route in a stretch of time; times in milliseconds. They add up. */
export class RouteSums {
  /** Completed requests, and the sum of their durations. */
  completed = 0;
  sumMs = 0;
  /** The same sum, with durations above the 98th percentile of a minute counted as it: one that is far out changes little. */
  typicalMs = 0;
  aborted = 0;
  errors = 0;
  blockedMs = 0;
  /** How many took longer than so many milliseconds. */
  readonly over = new Map<number, number>();
  /** Of `timed` completed requests it is known where their time went. */
  timed = 0;
  upstreamMs = 0;
  /** The event loop was busy, with whatever; of that, while a call was under way. */
  busyMs = 0;
  upstreamBusyMs = 0;
  /** Of `ownOf` of them their own CPU time is known. */
  ownOf = 0;
  ownMs = 0;
  readonly targets = new Map<string, TargetSums>();

  /** All that ended, aborted included. */
  get count(): number {
    return this.completed + this.aborted;
  }

  add(other: RouteSums): void {
    this.completed += other.completed;
    this.sumMs += other.sumMs;
    this.typicalMs += other.typicalMs;
    this.aborted += other.aborted;
    this.errors += other.errors;
    this.blockedMs += other.blockedMs;
    this.timed += other.timed;
    this.upstreamMs += other.upstreamMs;
    this.busyMs += other.busyMs;
    this.upstreamBusyMs += other.upstreamBusyMs;
    this.ownOf += other.ownOf;
    this.ownMs += other.ownMs;
    for (const [ms, count] of other.over) this.over.set(ms, (this.over.get(ms) ?? 0) + count);
    for (const [target, { calls, wallMs }] of other.targets) this.called(target, calls, wallMs);
  }

  called(target: string, calls: number, wallMs: number): void {
    const sums = this.targets.get(target);
    if (sums === undefined) this.targets.set(target, { calls, wallMs });
    else {
      sums.calls += calls;
      sums.wallMs += wallMs;
    }
  }
}

/** The same with the distribution of durations. */
export class RouteWindow extends RouteSums {
  constructor(readonly histogram = new Histogram()) {
    super();
  }

  merge(other: RouteWindow): void {
    this.add(other);
    this.histogram.merge(other.histogram);
  }
}

/** What is known of the process in a stretch of time. */
export class ProcessSums {
  /** So much of it was observed, milliseconds. */
  observedMs = 0;
  /** The event loop was busy. */
  busyMs = 0;
  /** The kernel held the process back, summed over CPUs. */
  throttledMs = 0;
  /** The fullest that the heap was, 0 to 1. */
  heapRatio = 0;

  add(other: ProcessSums): void {
    this.observedMs += other.observedMs;
    this.busyMs += other.busyMs;
    this.throttledMs += other.throttledMs;
    this.heapRatio = Math.max(this.heapRatio, other.heapRatio);
  }
}

/** Of all routes together: a GraphQL resolver's HTTP request is counted already. */
export const isCounted = (route: string): boolean => !route.startsWith('GRAPHQL ');

/** All routes of one process in a stretch of time. */
export class SiteWindow {
  readonly process = new ProcessSums();
  /** By name: `'GET /users/:id'`. */
  readonly routes = new Map<string, RouteWindow>();

  routeOf(name: string): RouteWindow {
    let window = this.routes.get(name);
    if (window === undefined) this.routes.set(name, (window = new RouteWindow()));
    return window;
  }
}
