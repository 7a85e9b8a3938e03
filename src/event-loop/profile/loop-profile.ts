import type { MonotonicClock } from '../../core/clock.js';
import { getOrAdd } from '../../core/get-or-add.js';
import type { Estimate } from '../../core/snapshot.js';
import type { LoopShares } from '../../ports/loop-profile.js';
import type { RequestOwner, RequestState } from '../../request/request-state.js';
import type { Route } from '../../request/routes.js';
import { isIdle, type Sample } from '../sample.js';
import { estimateOwnCpu } from './own-cpu.js';
import { StackTree } from './stack-tree.js';

export const HALF_MS = 300_000;
const MAX_NODES = 5_000;
/** One sample represents no more: a machine that was suspended has run nothing. */
const MAX_SAMPLE_MS = 10_000;
/** A request whose route is not known so long after the sample counts as background. */
const ROUTE_WAIT_MS = 2_000;
/** Deferred work of an ended request is its own for so long. A socket or an interval keeps the context for ever, and is everybody's. */
const AFTER_END_MS = 1_000;

/** Counts of one route in one window. */
interface Counts {
  samples: number;
  ms: number;
  squaredMs: number;
  /** Requests that had their first sample in this window, and requests that ended in it. */
  requests: number;
  ended: number;
}
const startCounts = (): Counts => ({ samples: 0, ms: 0, squaredMs: 0, requests: 0, ended: 0 });

export const labelRoute = (route: Route | null): string => (route === null ? 'background' : route.name);

function addSample(counts: Counts, ms: number): void {
  counts.samples += 1;
  counts.ms += ms;
}

/** Samples since a moment: counts and stacks by route. */
export class SampledWindow {
  samples = 0;
  idle = 0;
  readonly routes = new Map<Route | null, Counts>();
  /** Counts of resolvers and measured methods. Their samples count in `routes` as well, for the request. */
  readonly scopes = new Map<Route, Counts>();
  readonly stacks: StackTree;

  constructor(
    readonly sinceMs: number,
    maxNodes: number,
  ) {
    this.stacks = new StackTree(maxNodes);
  }

  add(route: Route | null, { frames, cut }: Sample, ms: number): void {
    this.stacks.add(labelRoute(route), frames, cut, ms);
    addSample(this.count(route), ms);
  }

  count(route: Route | null): Counts {
    return getOrAdd(this.routes, route, startCounts);
  }

  countScope(route: Route): Counts {
    return getOrAdd(this.scopes, route, startCounts);
  }

  /** The counts of a route: of requests, and of scopes within requests. */
  find(route: Route): readonly Counts[] {
    return [this.routes.get(route) ?? [], this.scopes.get(route) ?? []].flat();
  }
}

/** Shares of the event loop and stacks by route, in two halves of 5 minutes. A sample counts for the milliseconds that it represents. */
export class LoopProfile implements LoopShares {
  private previous!: SampledWindow;
  private current!: SampledWindow;
  private readonly totalMs = new Map<Route, number>();
  /** Samples of requests whose route is not known yet: global middleware of Express runs before it is. */
  private unrouted: { readonly sample: Sample; readonly ms: number }[] = [];
  private readonly collecting = new Set<SampledWindow>();

  constructor(
    private readonly owner: RequestOwner,
    private readonly nowMs: MonotonicClock,
  ) {
    this.start();
  }

  /** The sampler starts: the time before it, as the boot of the application, has no samples. */
  start(): void {
    this.current = this.previous = new SampledWindow(this.nowMs(), MAX_NODES);
  }

  add(sample: Sample, ms: number): void {
    this.unrouted.push({ sample, ms });
    this.countRouted();
  }

  /** A request, or a scope within one, has ended. */
  requestEnded({ route, endedMs, within }: RequestState): void {
    this.turn(endedMs);
    if (route === null) return;
    (within === null ? this.current.count(route) : this.current.countScope(route)).ended += 1;
    if (!this.totalMs.has(route)) this.totalMs.set(route, 0);
  }

  collect(maxNodes: number): SampledWindow {
    const window = new SampledWindow(this.nowMs(), maxNodes);
    this.collecting.add(window);
    return window;
  }

  stopCollecting(window: SampledWindow): void {
    this.countRouted(0);
    this.collecting.delete(window);
  }

  recent(): readonly SampledWindow[] {
    this.countRouted();
    this.turn(this.nowMs());
    return this.previous === this.current ? [this.current] : [this.previous, this.current];
  }

  ownCpuMs(routes: readonly Route[]): Estimate | null {
    const sums = startCounts();
    for (const window of this.recent()) {
      for (const counts of routes.flatMap((route) => window.find(route))) {
        for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += counts[key];
      }
    }
    // Requests in flight have samples and have not ended, so either number may be the larger one.
    return estimateOwnCpu({ ...sums, requests: Math.max(sums.ended, sums.requests) });
  }

  shareOfLoop(routes: readonly Route[]): number {
    const windows = this.recent();
    const wallMs = this.nowMs() - windows[0]!.sinceMs;
    let ms = 0;
    for (const window of windows) for (const route of routes) for (const counts of window.find(route)) ms += counts.ms;
    return wallMs <= 0 ? 0 : Math.min(1, ms / wallMs);
  }

  sampledMs(route: Route): number | null {
    if (this.recent().every(({ samples }) => samples === 0)) return null;
    return this.totalMs.get(route) ?? null;
  }

  private turn(nowMs: number): void {
    const ageMs = nowMs - this.current.sinceMs;
    if (ageMs < HALF_MS) return;
    const fresh = new SampledWindow(nowMs, MAX_NODES);
    this.previous = ageMs >= 2 * HALF_MS ? fresh : this.current;
    this.current = fresh;
  }

  private countRouted(waitMs = ROUTE_WAIT_MS): void {
    const leastMs = this.nowMs() - waitMs;
    for (const { sample, ms } of this.unrouted.splice(0)) {
      if (sample.atMs > leastMs && this.needsRoute(sample)) this.unrouted.push({ sample, ms });
      else this.count(sample, ms);
    }
  }

  private needsRoute(sample: Sample): boolean {
    const request = this.findRequest(sample);
    return request !== null && !isIdle(sample) && !request.closed && request.route === null;
  }

  /** Null: background. Another application of the process counts its own requests. */
  private findRequest({ state, atMs }: Sample): RequestState | null {
    const request = state?.within ?? state;
    return request !== null && this.isOwn(request, atMs) ? request : null;
  }

  private isOwn({ owner, endedMs }: RequestState, atMs: number): boolean {
    return owner === this.owner && (endedMs === 0 || atMs < endedMs + AFTER_END_MS);
  }

  private count(sample: Sample, given: number): void {
    this.turn(this.nowMs());
    const windows = [this.current, ...[...this.collecting].filter(({ sinceMs }) => sample.atMs >= sinceMs)];
    for (const window of windows) window.samples += 1;
    if (isIdle(sample)) return windows.forEach((window) => (window.idle += 1));
    const ms = Math.min(given, MAX_SAMPLE_MS);
    const own = this.findRequest(sample);
    const route = own?.route ?? null;
    for (const window of windows) window.add(route, sample, ms);
    if (own === null) return;
    this.charge(this.current.count(route), own, ms);
    const { scope = null, atMs } = sample;
    if (scope === null || scope.route === null || !this.isOwn(scope, atMs)) return;
    const counts = this.current.countScope(scope.route);
    addSample(counts, ms);
    this.charge(counts, scope, ms);
  }

  /** Adds a sample's time to its request, and keeps the sum of squares of all requests true: (s + ms)² - s². */
  private charge(counts: Counts, state: RequestState, ms: number): void {
    const { route, sampledMs } = state;
    if (sampledMs === 0) counts.requests += 1;
    counts.squaredMs += ms * (2 * sampledMs + ms);
    state.sampledMs += ms;
    if (route !== null) this.totalMs.set(route, (this.totalMs.get(route) ?? 0) + ms);
  }
}
