import { getOrAdd } from '../../core/get-or-add.js';
import { Histogram } from '../../core/histogram.js';
import { isTraffic } from '../../core/work-methods.js';

export interface TargetSums {
  calls: number;
  wallMs: number;
}

/** Figures of a route; their order is their number in a stored row. */
export const COUNTS = ['completed', 'aborted', 'errors', 'timed', 'sampled'] as const;
const TIMES = [
  'sumMs',
  'typicalMs',
  'blockedMs',
  'upstreamMs',
  'busyMs',
  'upstreamBusyMs',
  'ownMs',
  'poolWaitMs',
] as const;
export const FIGURES = [...COUNTS, ...TIMES];

/** Sums over the requests of one route in a stretch of time, milliseconds. Sums of several stretches can be added. */
export class RouteSums {
  /** Completed requests, and the sum of their durations. */
  completed = 0;
  sumMs = 0;
  /** `sumMs`, in which longer durations count as the 98th percentile of their minute: outliers change it little. */
  typicalMs = 0;
  aborted = 0;
  errors = 0;
  blockedMs = 0;
  /** By threshold, milliseconds: how many requests took longer. */
  readonly over = new Map<number, number>();
  /** Completed requests whose time was split into the parts that follow. */
  timed = 0;
  upstreamMs = 0;
  /** Waiting for a connection of a watched pool, while no call was under way. */
  poolWaitMs = 0;
  /** While the event loop was busy with any work; and the part of it while a call was under way. */
  busyMs = 0;
  upstreamBusyMs = 0;
  /** Requests with samples of their own CPU time, and that time. */
  sampled = 0;
  ownMs = 0;
  readonly targets = new Map<string, TargetSums>();

  get count(): number {
    return this.completed + this.aborted;
  }

  /** `times`: -1 subtracts, and a fraction adds a part. */
  add(other: RouteSums, times = 1): void {
    for (const key of FIGURES) this[key] += times * other[key];
    for (const [ms, count] of other.over) this.exceeded(ms, times * count);
    for (const [target, { calls, wallMs }] of other.targets) this.called(target, times * calls, times * wallMs);
  }

  exceeded(ms: number, count: number): void {
    this.over.set(ms, (this.over.get(ms) ?? 0) + count);
  }

  called(target: string, calls: number, wallMs: number): void {
    const sums = getOrAdd(this.targets, target, () => ({ calls: 0, wallMs: 0 }));
    sums.calls += calls;
    sums.wallMs += wallMs;
  }
}

/** Sums with the distribution of durations. */
export class RouteWindow extends RouteSums {
  readonly histogram = new Histogram();

  merge(other: RouteWindow): void {
    this.add(other);
    this.histogram.merge(other.histogram);
  }
}

/** Sums of the process in a stretch of time. */
export class ProcessSums {
  observedMs = 0;
  busyMs = 0;
  /** Throttling by the kernel, summed over CPUs. */
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

/** Whether a route counts in the whole: jobs are no traffic, and a resolver's HTTP request counts already. */
export const isCounted = (route: string): boolean => isTraffic(route.slice(0, route.indexOf(' ')));

/** Routes of one bucket by name: further ones are counted together. */
export const MAX_ROUTES = 300;
const OTHER_ROUTES = 'other routes';
const OTHER_WORK = 'METHOD other work';
/** They hold other routes in each bucket: they are not judged. */
export const OTHERS: ReadonlySet<string> = new Set([OTHER_ROUTES, OTHER_WORK]);

/** All routes of one process in a stretch of time. */
export class SiteWindow {
  readonly process = new ProcessSums();
  /** By name: `'GET /users/:id'`. */
  readonly routes = new Map<string, RouteWindow>();

  openRoute(name: string): RouteWindow {
    const known = this.routes.get(name);
    if (known !== undefined) return known;
    const others = isCounted(name) ? OTHER_ROUTES : OTHER_WORK;
    return getOrAdd(this.routes, this.routes.size < MAX_ROUTES ? name : others, () => new RouteWindow());
  }
}
