import { entryOf } from '../core/entry-of.js';
import type { RequestTime } from '../core/record.js';
import { requestContext, storedRequest, type RequestState } from '../request/request-state.js';
import { isMeasured, type Route } from '../request/routes.js';
import type { RequestTracker } from '../request/tracker.js';
import { RequestCalls, type LoopClock, type OpenCall, type OpenWait } from './request-calls.js';
import { RequestTimer } from './request-timer.js';
import { RouteTimes } from './route-times.js';
import type { MadeCall, Target, Targets } from './target.js';

/** A call under way. */
export interface Call {
  readonly target: Target;
  readonly startedMs: number;
  /** The call on its request; null where no request is known, or the call is not timed there. */
  readonly timed: OpenCall | null;
  /** The call on the scope within the request that makes it: a resolver or a measured method. Null as for `timed`. */
  readonly scoped: OpenCall | null;
}

/** The request whose code runs; null: none. Foreign: a request of another application. */
export type Caller = RequestState | null | 'foreign';

/** Every request's timer is of this room. */
const timerOf = (state: RequestState): RequestTimer | null => state.timing as RequestTimer | null;

/** Every call that the application makes: for its target, and for the request in whose async context it is made. */
export class Upstream {
  readonly routes = new Map<Route, RouteTimes>();
  private unplaced = 0;

  constructor(
    readonly targets: Targets,
    private readonly lifecycle: RequestTracker,
    private readonly clock: LoopClock,
    private readonly maxTimedCalls: number,
  ) {}

  started(state: RequestState): void {
    state.timing = new RequestTimer(this.clock.idleMs(), this.unplaced);
  }

  ended(state: RequestState): void {
    const timer = timerOf(state);
    if (timer === null) return;
    const { calls } = timer;
    calls?.close(state.endedMs);
    timer.measure(state.endedMs - state.startedMs, this.clock.idleMs(), this.unplaced);
    const { route } = state;
    if (calls !== null) this.addToTargets(timer, calls, route);
    if (route === null) return;
    const times = entryOf(this.routes, route, () => new RouteTimes());
    times.ended += 1;
    times.durationMs += state.endedMs - state.startedMs;
    if (!state.aborted) times.add(timer);
  }

  private addToTargets(timer: RequestTimer, calls: RequestCalls, route: Route | null): void {
    const rows = [...calls.rows()];
    timer.upstream = rows.map(({ use }) => use);
    if (route === null || !isMeasured(route)) return;
    const sumMs = rows.reduce((sum, { use }) => sum + use.wallMs, 0);
    for (const { target, use, mostAlike } of rows) {
      const { calls: asked, wallMs } = use;
      const waitMs = sumMs === 0 ? 0 : (timer.upstreamMs * wallMs) / sumMs;
      const repeatedMs = Math.min(waitMs, mostAlike.repeatedMs);
      target.askedBy(route, { calls: asked, wallMs, alike: mostAlike.calls, waitMs, repeatedMs });
    }
    const waitedMs = [...calls.waits.values()].reduce((sum, ms) => sum + ms, 0);
    for (const [{ pools }, ms] of calls.waits)
      pools?.waited(route, waitedMs === 0 ? 0 : (timer.poolWaitMs * ms) / waitedMs);
  }

  /** Splits the time of a request that has not ended. */
  splitSoFar(state: RequestState): RequestTime | null {
    const timer = timerOf(state);
    if (timer === null) return null;
    const nowMs = this.clock.nowMs();
    timer.calls?.turn(nowMs);
    timer.measure(nowMs - state.startedMs, this.clock.idleMs(), this.unplaced);
    return timer.time;
  }

  /** A client makes a call now; null where another application's request makes it. `what`: calls of one text are alike. */
  begin(made: MadeCall, what: string): Call | null {
    const caller = this.caller();
    return caller === 'foreign' ? null : this.beginFor(caller, this.targets.find(made), what);
  }

  /** `what` null: this call is like no other. `background`: without a request it is not unplaced, like a queue worker's. */
  beginFor(state: RequestState | null, target: Target, what: string | null, background = false): Call {
    const startedMs = this.clock.nowMs();
    target.calls += 1;
    target.inFlight += 1;
    // A request that has ended has its record already.
    if ((state === null || state.closed) && !background) this.unplaced += 1;
    const scope = requestContext.getStore() ?? null;
    const isWithin = scope !== null && scope.within !== null && scope.within === state;
    return {
      target,
      startedMs,
      timed: this.callsOf(state)?.begin(target, what, startedMs) ?? null,
      scoped: isWithin ? (this.callsOf(scope)?.begin(target, what, startedMs) ?? null) : null,
    };
  }

  end({ target, startedMs, timed, scoped }: Call, failed: boolean): void {
    const nowMs = this.clock.nowMs();
    target.inFlight -= 1;
    if (failed) target.errors += 1;
    target.durations.record(nowMs - startedMs);
    timed?.of.end(timed, nowMs, failed);
    scoped?.of.end(scoped, nowMs, failed);
  }

  /** A call that a client reports at its end, without its request. */
  endedUnplaced(target: Target, durationMs: number): void {
    target.calls += 1;
    this.unplaced += 1;
    target.durations.record(durationMs);
  }

  /** The code that runs asks a watched pool for a connection. Returns what ends the wait. */
  beginWait(target: Target): () => void {
    const caller = this.caller();
    if (caller === 'foreign') return () => {};
    const startedMs = this.clock.nowMs();
    let open: OpenWait | null | undefined = this.callsOf(caller)?.beginWait(target, startedMs) ?? null;
    return () => {
      if (open === undefined) return;
      const nowMs = this.clock.nowMs();
      target.pools?.waits.record(nowMs - startedMs);
      open?.of.endWait(open, nowMs);
      open = undefined;
    };
  }

  private callsOf(state: RequestState | null): RequestCalls | null {
    const timer = state === null || state.closed ? null : timerOf(state);
    if (timer === null) return null;
    return (timer.calls ??= new RequestCalls(this.clock, this.maxTimedCalls));
  }

  /** The request in whose async context the code runs. */
  readonly caller = (): Caller => {
    const stored = storedRequest();
    if (stored === undefined) return null;
    return stored.owner === this.lifecycle ? stored : 'foreign';
  };
}
