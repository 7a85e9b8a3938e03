import { entryOf } from '../core/entry-of.js';
import { storedRequest, type RequestState } from '../request/request-state.js';
import type { RequestTime } from '../core/record.js';
import type { RequestTracker } from '../request/tracker.js';
import { isMeasured, type Route } from '../request/routes.js';
import { NO_CALLS, RequestCalls, RequestTimer, type LoopClock, type OpenCall } from './request-calls.js';
import { RouteTimes } from './route-times.js';
import type { MadeCall, Target, Targets } from './target.js';
import { DrivenStatements } from './watch/driven-statements.js';

/** A call under way. */
export interface Call {
  readonly target: Target;
  readonly startedMs: number;
  /** Of its request, when it is known and the call is timed there. */
  readonly timed: OpenCall | null;
}

/** Who makes a call; null: nobody knows. Foreign: a request of another application. */
export type Caller = RequestState | null | 'foreign';

/** Every request's timer is ours: this room alone sets it. */
const timerOf = (state: RequestState): RequestTimer | null => state.timing as RequestTimer | null;

/** Every call that the application makes: for its target, and for the request whose call it is. */
export class Upstream {
  readonly routes = new Map<Route, RouteTimes>();
  readonly driven = new DrivenStatements();
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
    this.measure(state, timer, state.endedMs);
    const { route } = state;
    if (calls !== null) this.tellTargets(timer, calls, state);
    if (route === null) return;
    const times = entryOf(this.routes, route, () => new RouteTimes());
    times.ended += 1;
    times.durationMs += state.endedMs - state.startedMs;
    if (!state.aborted) times.add(timer);
  }

  private tellTargets(timer: RequestTimer, calls: RequestCalls, state: RequestState): void {
    const rows = [...calls.rows()];
    timer.upstream = rows.map(({ use }) => use);
    const { route } = state;
    if (route === null || !isMeasured(route)) return;
    const sumMs = rows.reduce((sum, { use }) => sum + use.wallMs, 0);
    for (const { target, use, mostAlike } of rows) {
      const { calls: asked, wallMs } = use;
      const waitMs = sumMs === 0 ? 0 : (timer.upstreamMs * wallMs) / sumMs;
      const repeatedMs = Math.min(waitMs, mostAlike.repeatedMs);
      target.askedBy(route, { calls: asked, wallMs, alike: mostAlike.calls, waitMs, repeatedMs });
    }
  }

  /** Of a request that has not ended. */
  splitSoFar(state: RequestState): RequestTime | null {
    const timer = timerOf(state);
    if (timer === null) return null;
    this.measure(state, timer, this.clock.nowMs());
    return timer.time;
  }

  private measure(state: RequestState, timer: RequestTimer, untilMs: number): void {
    const union = timer.calls?.union(untilMs) ?? NO_CALLS;
    timer.measure(untilMs - state.startedMs, this.clock.idleMs(), this.unplaced, union);
  }

  /**
   * Calls begin where the code that makes them runs. Null: another application's request makes it. `background`: one that
   * nobody makes where no request is known to make it, as of a worker that waits for its queue.
   */
  begin(made: MadeCall, caller = this.caller(), background = false): Call | null {
    return caller === 'foreign' ? null : this.beginFor(caller, this.targets.of(made), whatOf(made), background);
  }

  /** `what`: calls of one text are alike; null: this one is like no other. */
  beginFor(state: RequestState | null, target: Target, what: string | null, background = false): Call {
    const startedMs = this.clock.nowMs();
    target.calls += 1;
    target.inFlight += 1;
    // A request that has ended has its record already.
    const unplaced = (state === null || state.closed) && !background;
    if (unplaced) this.unplaced += 1;
    return { target, startedMs, timed: this.timed(state, target, what, startedMs) };
  }

  private timed(state: RequestState | null, target: Target, what: string | null, startedMs: number): OpenCall | null {
    const timer = state === null || state.closed ? null : timerOf(state);
    if (timer === null) return null;
    timer.calls ??= new RequestCalls(this.clock, this.maxTimedCalls);
    return timer.calls.begin(target, what, startedMs);
  }

  end({ target, startedMs, timed }: Call, failed: boolean): void {
    const nowMs = this.clock.nowMs();
    target.inFlight -= 1;
    if (failed) target.errors += 1;
    target.took(nowMs - startedMs);
    timed?.of.end(timed, nowMs, failed);
  }

  /** A call that is told of when it is over, and nobody knows by whom it was made. */
  endedUnplaced(target: Target, durationMs: number): void {
    target.calls += 1;
    this.unplaced += 1;
    target.took(durationMs);
  }

  /** No request but one is in flight: whatever a request does is its. */
  get isAlone(): boolean {
    return this.lifecycle.inFlight <= 1;
  }

  /** The request whose code runs. */
  readonly caller = (): Caller => {
    const stored = storedRequest();
    if (stored === undefined) return null;
    return stored.owner === this.lifecycle ? stored : 'foreign';
  };
}

/** Two calls that are alike: the same URL, or the same command whatever its keys. */
const whatOf = ({ what, method, path }: MadeCall): string => what ?? (path === '' ? method : `${method} ${path}`);
