import type { MonotonicClock } from '../../core/clock.js';
import type { LoopShares } from '../../ports/loop-profile.js';
import type { RequestOwner, RequestState } from '../../request/request-state.js';
import type { Route } from '../../request/routes.js';
import type { Estimate } from '../../core/snapshot.js';
import { isIdle, type Sample } from '../sample.js';
import { estimateOwnCpu } from './own-cpu.js';
import { SampledWindow } from './sampled-window.js';

export const HALF_MS = 300_000;
const MAX_NODES = 2_500;
/** One sample represents no more: a machine that was suspended has run nothing. */
const MAX_SAMPLE_MS = 10_000;
/** A request whose route is not known so long after the sample counts as background. */
const ROUTE_WAIT_MS = 2_000;

/** Shares of the event loop and stacks by route, from samples, in two halves of 5 minutes. A sample counts for the milliseconds that it represents. */
export class LoopProfile implements LoopShares {
  private previous!: SampledWindow;
  private current!: SampledWindow;
  private readonly totalMs = new Map<Route, number>();
  private readonly sampledMsByRequest = new WeakMap<RequestState, number>();
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
    this.countRouted();
    if (this.needsRoute(sample)) this.unrouted.push({ sample, ms });
    else this.count(sample, ms);
  }

  requestEnded({ route, endedMs }: RequestState): void {
    this.turn(endedMs);
    if (route !== null) this.current.count(route).ended += 1;
  }

  collect(maxNodes: number): SampledWindow {
    const window = new SampledWindow(this.nowMs(), maxNodes);
    this.collecting.add(window);
    return window;
  }

  stopCollecting(window: SampledWindow): void {
    for (const { sample, ms } of this.unrouted.splice(0)) this.count(sample, ms);
    this.collecting.delete(window);
  }

  recent(): readonly SampledWindow[] {
    this.countRouted();
    this.turn(this.nowMs());
    return this.previous === this.current ? [this.current] : [this.previous, this.current];
  }

  ownCpuMs(routes: readonly Route[]): Estimate | null {
    const sums = { samples: 0, ms: 0, squaredMs: 0, requests: 0 };
    let ended = 0;
    for (const window of this.recent()) {
      for (const route of routes) {
        const counts = window.routes.get(route);
        if (counts === undefined) continue;
        sums.samples += counts.samples;
        sums.ms += counts.ms;
        sums.squaredMs += counts.squaredMs;
        sums.requests += counts.requests;
        ended += counts.ended;
      }
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
    return this.totalMs.get(route) ?? 0;
  }

  private turn(nowMs: number): void {
    const ageMs = nowMs - this.current.sinceMs;
    if (ageMs < HALF_MS) return;
    const fresh = new SampledWindow(nowMs, MAX_NODES);
    this.previous = ageMs >= 2 * HALF_MS ? fresh : this.current;
    this.current = fresh;
  }

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
    this.turn(this.nowMs());
    const windows = [this.current, ...[...this.collecting].filter(({ sinceMs }) => sample.atMs >= sinceMs)];
    if (isIdle(sample)) return windows.forEach((window) => window.addIdle());
    const ms = Math.min(given, MAX_SAMPLE_MS);
    const request = sample.state?.within ?? sample.state;
    // Another application of the process counts its own requests.
    const own = request?.owner === this.owner ? request : null;
    const route = own?.route ?? null;
    const [counts] = windows.map((window) => window.add(route, sample, ms));
    if (own === null) return;
    const before = this.sampledMsByRequest.get(own) ?? 0;
    this.sampledMsByRequest.set(own, before + ms);
    if (before === 0) counts!.requests += 1;
    counts!.squaredMs += ms * (2 * before + ms);
    if (route !== null) this.totalMs.set(route, (this.totalMs.get(route) ?? 0) + ms);
  }
}
