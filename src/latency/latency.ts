import type { MonotonicClock } from '../core/clock.js';
import type { RecordHold } from '../core/record-hold.js';
import type { Recorder } from '../core/recorder.js';
import type { RequestState } from '../core/request-state.js';
import type { Resolved } from '../core/option.js';
import type { Route } from '../core/route.js';
import type { RouteHistogram } from '../core/sink.js';
import type { RouteSnapshot } from '../core/snapshot.js';
import type { RequestLifecycle, RequestObserver } from '../http/request-lifecycle.js';
import type { RouteRegistry } from '../http/route-registry.js';
import type { latencyOption } from './latency.options.js';
import { requestRecordOf } from './request-record.js';
import { routeHistograms, snapshotRoutes } from './route-snapshot.js';
import { RouteStats } from './route-stats.js';
import { addServerTiming } from './server-timing.js';

/** One record and one histogram entry a request, written when it has ended. */
export class Latency implements RequestObserver {
  /** Only there when asked for: an observer without `started` costs a request's start nothing. */
  readonly started?: (state: RequestState) => void;
  private readonly ignored: ReadonlySet<string>;
  private readonly recordOverMs: number;

  constructor(
    private readonly options: NonNullable<Resolved<typeof latencyOption>>,
    private readonly lifecycle: RequestLifecycle,
    private readonly routes: RouteRegistry,
    private readonly recorder: Recorder,
    nowMs: MonotonicClock,
    /** Who may ask for a record to wait; null: nobody. */
    private readonly hold: RecordHold | null = null,
  ) {
    this.ignored = new Set(options.ignore);
    this.recordOverMs = recorder.recordRequestsOverMs(options.slowMs);
    if (options.serverTiming) this.started = (state) => addServerTiming(state, nowMs);
  }

  get slowMs(): number {
    return this.options.slowMs;
  }

  install(): void {
    this.routes.listen((route) => this.measure(route));
    this.lifecycle.observe(this);
  }

  ended(state: RequestState): void {
    const latency = state.route?.latency;
    if (latency === null || latency === undefined) return;
    const durationMs = state.endedMs - state.startedMs;
    if (state.aborted) latency.aborted();
    else latency.completed(state.status, durationMs);
    if (!(durationMs > this.recordOverMs)) return;
    if (this.hold === null || !this.hold.hold(state, this.record)) this.record(state);
  }

  private readonly record = (state: RequestState): void => {
    this.recorder.push(requestRecordOf(state));
  };

  snapshot(): RouteSnapshot[] {
    const inFlight = new Map<Route, number>();
    for (const { route } of this.lifecycle.states()) {
      if (route !== null) inFlight.set(route, (inFlight.get(route) ?? 0) + 1);
    }
    return snapshotRoutes(this.routes.all, inFlight, this.options.overMs);
  }

  histograms(): Iterable<RouteHistogram> {
    return routeHistograms(this.routes.all);
  }

  private measure(route: Route): void {
    if (route.handler?.skipped === true || this.ignored.has(route.pattern)) return;
    route.latency = new RouteStats(this.options.overMs);
  }
}
