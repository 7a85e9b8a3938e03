import type { RequestTime } from '../core/record.js';
import { requestContext, type RequestState } from '../request/request-state.js';
import { isMeasured, type Route } from '../request/routes.js';
import type { RequestTracker } from '../request/tracker.js';
import { Call, readTimes, RequestCalls, RequestTimer, RouteTimes, type LoopClock } from './request-time.js';
import { Pools, type PoolSize } from './pool.js';
import type { Target, Targets } from './target.js';

/** `timing` is an interface there, since the request room imports nothing from here: this class alone sets it. */
const readTimer = (state: RequestState): RequestTimer | null => state.timing as RequestTimer | null;

/** Counts every call that the application makes, for its target and for the request in whose async context it is made. */
export class Upstream {
  private unplaced = 0;

  constructor(
    readonly targets: Targets,
    private readonly requests: RequestTracker,
    private readonly clock: LoopClock,
    private readonly maxTimedCalls: number,
  ) {}

  started(state: RequestState): void {
    state.timing = new RequestTimer(this.clock.idleMs(), this.unplaced);
  }

  ended(state: RequestState): void {
    const timer = readTimer(state);
    if (timer === null) return;
    const { calls } = timer;
    const durationMs = state.endedMs - state.startedMs;
    calls?.close(state.endedMs);
    timer.ended(durationMs, this.clock.idleMs(), this.unplaced);
    const { route } = state;
    if (route === null) return;
    const times = readTimes(route) ?? startTimes(route);
    times.ended += 1;
    times.durationMs += durationMs;
    if (calls !== null) {
      const { time } = timer;
      if (isMeasured(route)) addToTargets(time, calls, route);
      if (!state.aborted) times.add(time);
    } else if (!state.aborted) times.addBusy(timer.busyMs);
  }

  splitSoFar(state: RequestState): RequestTime | null {
    const timer = readTimer(state);
    if (timer === null) return null;
    const nowMs = this.clock.nowMs();
    timer.calls?.addElapsed(nowMs);
    return timer.split(nowMs - state.startedMs, this.clock.idleMs(), this.unplaced);
  }

  /**
   * Begins a call; null where the request is another application's. `what`: a URL or command, for N+1; null: never repeated.
   * `background`: outside of requests the call is not unplaced, as that of a queue worker.
   */
  begin(target: Target, what: string | null, background = false): Call | null {
    const call = this.place(target, what, false, background);
    if (call === null) return null;
    target.calls += 1;
    target.inFlight += 1;
    return call;
  }

  /** Returns a function that begins a wait for a connection of this pool. */
  addPool<P extends object>(target: Target, pool: P, readSize: (pool: P) => PoolSize): () => Call | null {
    (target.pools ??= new Pools()).add(pool, readSize);
    return () => this.place(target, null, true, true);
  }

  /** A call that a client reports at its end, without its request. */
  endedUnplaced(target: Target, durationMs: number): void {
    target.calls += 1;
    this.addUnplaced(target);
    target.durations.record(durationMs);
  }

  private addUnplaced(target: Target): void {
    this.unplaced += 1;
    target.unplaced += 1;
  }

  /** Begins a call or a wait on the request in whose async context the code runs. */
  private place(target: Target, what: string | null, isWait: boolean, background: boolean): Call | null {
    const scope = requestContext.getStore();
    const state = scope?.within ?? scope;
    if (state !== undefined && state.owner !== this.requests) return null;
    const call = new Call(this.clock, target, isWait, this.clock.nowMs());
    // The record of an ended request is written already.
    if (state === undefined || scope === undefined || state.closed) {
      if (!background) this.addUnplaced(target);
      return call;
    }
    this.findCalls(state)?.begin(call, what);
    if (scope !== state && !scope.closed) {
      call.scoped = new Call(this.clock, target, isWait, call.startedMs);
      this.findCalls(scope)?.begin(call.scoped, what);
    }
    return call;
  }

  private findCalls(state: RequestState): RequestCalls | null {
    const timer = readTimer(state);
    return timer && (timer.calls ??= new RequestCalls(this.clock, this.maxTimedCalls));
  }
}

function startTimes(route: Route): RouteTimes {
  const times = new RouteTimes();
  route.times = times;
  return times;
}

function addToTargets({ upstreamMs, poolWaitMs }: RequestTime, { uses }: RequestCalls, route: Route): void {
  const sumMs = uses.reduce((sum, use) => sum + use.wallMs, 0);
  const sumWaitsMs = uses.reduce((sum, use) => sum + use.waitMs, 0);
  for (const use of uses) {
    const { target, wallMs, waitMs } = use;
    target.addRequest(route, use, upstreamMs * share(wallMs, sumMs), poolWaitMs * share(waitMs, sumWaitsMs));
  }
}

const share = (part: number, all: number): number => (all === 0 ? 0 : part / all);
