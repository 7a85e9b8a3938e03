import type { MonotonicClock } from '../../core/clock.js';
import type { LoopShares } from '../../ports/loop-profile.js';
import type { RequestOwner, RequestState } from '../../request/request-state.js';
import type { Route } from '../../request/routes.js';
import type { Estimate } from '../../core/snapshot.js';
import { isIdle, type Sample } from '../sample.js';
import { estimateOwnCpu } from './own-cpu.js';
import { SampledWindow } from './sampled-window.js';

/** Figures are of the last one to two of these. */
export const HALF_MS = 300_000;
/** Stack nodes that each of the two halves keeps. */
const MAX_NODES = 2_500;
/** One sample represents no more: a machine that was suspended has run nothing. */
const MAX_SAMPLE_MS = 10_000;
/** A request whose route is not known so long after the sample counts as background. */
const ROUTE_WAIT_MS = 2_000;

/** Requests of a route that have ended. */
class RouteEnds {
  total = 0;
  /** The total when each half began. */
  beforeCurrent = 0;
  beforePrevious = 0;
  /** Milliseconds of the loop that samples have shown since the application started. */
  sampledMs = 0;
}

/** This room alone sets it. */
const endsOf = (route: Route): RouteEnds | null => route.loopEnds as RouteEnds | null;

/**
 * Shares of the event loop and stacks by route, from samples. It keeps two halves of 5 minutes, so that old times are forgotten
 * and memory is bounded. A sample counts for the milliseconds that it represents, whatever the rate at which it was taken.
 */
export class LoopProfile implements LoopShares {
  private previous: SampledWindow;
  private current: SampledWindow;
  private turnsAtMs: number;
  private readonly ends: RouteEnds[] = [];
  /** Milliseconds that the samples of a request represent. */
  private readonly sampledMsByRequest = new WeakMap<RequestState, number>();
  /** Samples of requests whose route is not known yet. */
  private unrouted: { readonly sample: Sample; readonly ms: number }[] = [];
  private readonly collecting = new Set<SampledWindow>();

  constructor(
    private readonly owner: RequestOwner,
    private readonly nowMs: MonotonicClock,
  ) {
    this.current = this.previous = new SampledWindow(nowMs(), MAX_NODES);
    this.turnsAtMs = nowMs() + HALF_MS;
  }

  /** The sampler starts: the time before it, as the boot of the application, has no samples. */
  start(): void {
    this.current = this.previous = new SampledWindow(this.nowMs(), MAX_NODES);
    this.turnsAtMs = this.nowMs() + HALF_MS;
  }

  /** Off the request path, within some hundred milliseconds after the sample was taken. */
  add(sample: Sample, ms: number): void {
    this.countRouted();
    if (this.needsRoute(sample)) this.unrouted.push({ sample, ms });
    else this.count(sample, ms);
  }

  /** On the request path. */
  requestEnded(state: RequestState): void {
    if (state.endedMs >= this.turnsAtMs) this.turn(state.endedMs);
    const { route } = state;
    if (route !== null) this.endsOf(route).total += 1;
  }

  /** Counts the samples from now on in one more window, until {@link stopCollecting}. */
  collect(maxNodes: number): SampledWindow {
    const window = new SampledWindow(this.nowMs(), maxNodes);
    this.collecting.add(window);
    return window;
  }

  stopCollecting(window: SampledWindow): void {
    for (const { sample, ms } of this.unrouted.splice(0)) this.count(sample, ms);
    this.collecting.delete(window);
  }

  /** The last 5 to 10 minutes, the older half first. */
  recent(): readonly SampledWindow[] {
    this.countRouted();
    this.turnWhenDue();
    return this.previous === this.current ? [this.current] : [this.previous, this.current];
  }

  ownCpuMs(routes: readonly Route[]): Estimate | null {
    const sums = { samples: 0, ms: 0, squaredMs: 0, requests: 0 };
    let ended = 0;
    for (const window of this.recent()) {
      for (const route of routes) {
        const own = window.routes.get(route);
        if (own === undefined) continue;
        sums.samples += own.samples;
        sums.ms += own.ms;
        sums.squaredMs += own.squaredMs;
        sums.requests += own.requests;
      }
    }
    for (const route of routes) {
      const ends = endsOf(route);
      if (ends !== null) ended += ends.total - ends.beforePrevious;
    }
    // Requests in flight have samples, too.
    return estimateOwnCpu({ ...sums, requests: Math.max(ended, sums.requests) });
  }

  shareOfLoop(routes: readonly Route[]): number {
    const windows = this.recent();
    const wallMs = this.nowMs() - windows[0]!.sinceMs;
    let ms = 0;
    for (const window of windows) for (const route of routes) ms += window.routes.get(route)?.ms ?? 0;
    return wallMs <= 0 ? 0 : Math.min(1, ms / wallMs);
  }

  sampledMs(route: Route): number | null {
    if (this.recent().every(({ samples }) => samples === 0)) return null;
    return endsOf(route)?.sampledMs ?? 0;
  }

  private turnWhenDue(): void {
    const nowMs = this.nowMs();
    if (nowMs >= this.turnsAtMs) this.turn(nowMs);
  }

  private turn(nowMs: number): void {
    const isLongAgo = nowMs >= this.turnsAtMs + HALF_MS;
    const fresh = new SampledWindow(nowMs, MAX_NODES);
    this.previous = isLongAgo ? fresh : this.current;
    this.current = fresh;
    this.turnsAtMs = nowMs + HALF_MS;
    for (const ends of this.ends) {
      ends.beforePrevious = isLongAgo ? ends.total : ends.beforeCurrent;
      ends.beforeCurrent = ends.total;
    }
  }

  /** The framework may match a route after the sample: global middleware of Express runs before it. */
  private needsRoute(sample: Sample): boolean {
    const { state } = sample;
    if (state === null || isIdle(sample)) return false;
    const request = state.within ?? state;
    return request.owner === this.owner && !request.closed && request.route === null;
  }

  private countRouted(): void {
    const leastMs = this.nowMs() - ROUTE_WAIT_MS;
    for (const { sample, ms } of this.unrouted.splice(0)) {
      if (sample.atMs > leastMs && this.needsRoute(sample)) this.unrouted.push({ sample, ms });
      else this.count(sample, ms);
    }
  }

  private count(sample: Sample, given: number): void {
    this.turnWhenDue();
    const collecting = [...this.collecting].filter(({ sinceMs }) => sample.atMs >= sinceMs);
    const windows = [this.current, ...collecting];
    if (isIdle(sample)) {
      for (const window of windows) window.addIdle();
      return;
    }
    const ms = Math.min(given, MAX_SAMPLE_MS);
    const request = sample.state?.within ?? sample.state;
    // Another application of the process counts its own requests.
    const own = request?.owner === this.owner ? request : null;
    const route = own?.route ?? null;
    const [counted] = windows.map((window) => window.add(route, sample, ms));
    if (own === null) return;
    const before = this.sampledMsByRequest.get(own) ?? 0;
    this.sampledMsByRequest.set(own, before + ms);
    if (before === 0) counted!.requests += 1;
    counted!.squaredMs += ms * (2 * before + ms);
    if (route !== null) this.endsOf(route).sampledMs += ms;
  }

  private endsOf(route: Route): RouteEnds {
    let ends = endsOf(route);
    if (ends === null) {
      route.loopEnds = ends = new RouteEnds();
      this.ends.push(ends);
    }
    return ends;
  }
}
