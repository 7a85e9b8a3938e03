import { LinkedList, type Linked } from '../core/linked-list.js';
import type { RequestTime, UpstreamUse } from '../core/record.js';
import type { TimeSplit } from '../request/request-state.js';
import type { Route } from '../request/routes.js';
import type { Target } from './target.js';

/** The loop's clocks, milliseconds. */
export interface LoopClock {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** How long the event loop has waited for events since the process started. */
  readonly idleMs: () => number;
}

/** Different URLs or commands of one request to one target whose repetitions are counted. */
const MAX_SAME = 64;
/** So many calls for one URL or command are an N+1 also where they begin together, as in `Promise.all(ids.map(load))`. */
const MANY_CALLS = 10;

/** Calls of one request for the same URL or command. */
class Alike {
  calls = 0;
  /** Whether one has ended since the last round began. */
  hasEnded = false;
  /** How often the request waited for such calls, one after the other: calls that begin together are one round. */
  rounds = 0;

  constructor(
    readonly what: string,
    readonly next: Alike | null,
  ) {}

  get repeats(): number {
    return this.calls >= MANY_CALLS ? this.calls : this.rounds;
  }
}

/** Calls of one request to one target, and its waits for connections to it. */
class Use {
  calls = 0;
  wallMs = 0;
  maxMs = 0;
  errors = 0;
  /** Sum of all waits: those at the same time count each. */
  waitMs = 0;
  // A linked list is cheaper than a map or an array: most requests repeat few URLs and commands.
  private same: Alike | null = null;
  private different = 0;

  constructor(readonly target: Target) {}

  findAlike(what: string): Alike | null {
    for (let one = this.same; one !== null; one = one.next) if (one.what === what) return one;
    if (this.different >= MAX_SAME) return null;
    this.different += 1;
    return (this.same = new Alike(what, this.same));
  }

  get record(): UpstreamUse {
    const { target, calls, wallMs, maxMs, errors } = this;
    return { target: target.name, kind: target.kind, calls, wallMs, maxMs, errors };
  }

  /** Repetitions of the URL or command that has most of them. */
  get mostRepeats(): number {
    let most = 0;
    for (let one = this.same; one !== null; one = one.next) most = Math.max(most, one.repeats);
    return most;
  }
}

/** A call under way, or a wait for a connection of a pool. */
export class Call implements Linked<Call> {
  // Links of the request's list of open calls.
  previous: Call | null = null;
  next: Call | null = null;
  /** The open calls that it is one of: null without a request that times it, and once either has ended. */
  calls: RequestCalls | null = null;
  use: Use | null = null;
  /** Calls for the same URL or command; null for a call that is like no other. */
  alike: Alike | null = null;
  /** The call on the scope within the request that makes it: a resolver or a measured method. */
  scoped: Call | null = null;
  /** Asked when the request ends before the call: whether it has failed already, for a client that reports it late. */
  hasFailed: (() => boolean) | null = null;
  private isOver = false;

  constructor(
    private readonly clock: LoopClock,
    readonly target: Target,
    readonly isWait: boolean,
    readonly startedMs: number,
  ) {}

  /** Counts the first end only. */
  end(failed: boolean): void {
    if (this.isOver) return;
    this.isOver = true;
    const nowMs = this.clock.nowMs();
    const { target, scoped } = this;
    if (this.isWait) target.pools?.waits.record(nowMs - this.startedMs);
    else {
      target.inFlight -= 1;
      if (failed) target.errors += 1;
      target.durations.record(nowMs - this.startedMs);
    }
    this.calls?.end(this, nowMs, failed);
    scoped?.calls?.end(scoped, nowMs, failed);
  }
}

/** The calls of one request, its waits for connections, and the time that it spent with either; milliseconds. */
export class RequestCalls {
  /** At least one call was under way, and the part of it in which the event loop was idle. */
  upstreamMs = 0;
  upstreamIdleMs = 0;
  /** No call was under way, and the request waited for a connection. */
  poolWaitMs = 0;
  poolWaitIdleMs = 0;
  readonly uses: Use[] = [];
  private readonly open = new LinkedList<Call>();
  private openCalls = 0;
  private timedCalls = 0;
  private timedWaits = 0;
  private sinceMs = 0;
  private sinceIdleMs = 0;

  constructor(
    private readonly clock: LoopClock,
    private readonly maxTimed: number,
  ) {}

  /** Counts a call or a wait, and times the first `maxTimed` of each. `what`: its URL or command; null: it is like no other. */
  begin(call: Call, what: string | null): void {
    const { startedMs, isWait } = call;
    const use = this.findUse(call.target);
    if (!isWait) use.calls += 1;
    const alike = what === null ? null : use.findAlike(what);
    if (alike !== null) alike.calls += 1;
    if ((isWait ? ++this.timedWaits : ++this.timedCalls) > this.maxTimed) return;
    if (this.openCalls === 0) this.addElapsed(startedMs);
    if (!isWait) this.openCalls += 1;
    if (alike !== null && (alike.hasEnded || alike.rounds === 0)) {
      alike.rounds += 1;
      alike.hasEnded = false;
    }
    this.open.add(call);
    call.calls = this;
    call.use = use;
    call.alike = alike;
  }

  /** Ends an open call, once. */
  end(call: Call, nowMs: number, failed: boolean): void {
    const { isWait, alike } = call;
    const use = call.use!;
    if (this.openCalls === (isWait ? 0 : 1)) this.addElapsed(nowMs);
    this.open.delete(call);
    call.calls = null;
    const ms = Math.max(0, nowMs - call.startedMs);
    if (isWait) {
      use.waitMs += ms;
      return;
    }
    this.openCalls -= 1;
    if (failed) use.errors += 1;
    use.wallMs += ms;
    use.maxMs = Math.max(use.maxMs, ms);
    if (alike !== null) alike.hasEnded = true;
  }

  close(nowMs: number): void {
    for (let { first } = this.open; first !== null; { first } = this.open)
      this.end(first, nowMs, first.hasFailed?.() === true);
  }

  /** Adds the time since the last change to its sum: a call was under way, or only a wait for a connection. */
  addElapsed(nowMs: number): void {
    const idleMs = this.clock.idleMs();
    if (this.open.size > 0) {
      const ms = Math.max(0, nowMs - this.sinceMs);
      const loopIdleMs = Math.min(ms, Math.max(0, idleMs - this.sinceIdleMs));
      if (this.openCalls > 0) {
        this.upstreamMs += ms;
        this.upstreamIdleMs += loopIdleMs;
      } else {
        this.poolWaitMs += ms;
        this.poolWaitIdleMs += loopIdleMs;
      }
    }
    this.sinceMs = nowMs;
    this.sinceIdleMs = idleMs;
  }

  private findUse(target: Target): Use {
    for (const known of this.uses) if (known.target === target) return known;
    const use = new Use(target);
    this.uses.push(use);
    return use;
  }
}

const NO_CALLS = { upstreamMs: 0, upstreamIdleMs: 0, poolWaitMs: 0, poolWaitIdleMs: 0 };

/** Splits the time of one request. */
export class RequestTimer implements TimeSplit {
  calls: RequestCalls | null = null;
  // As of the request's end: 0 milliseconds until then.
  private durationMs = 0;
  private idleMsAtEnd = 0;
  private unplacedAtEnd: number;

  constructor(
    private readonly idleMsAtStart: number,
    private readonly unplacedAtStart: number,
  ) {
    this.unplacedAtEnd = unplacedAtStart;
  }

  ended(durationMs: number, loopIdleMs: number, unplaced: number): void {
    this.durationMs = durationMs;
    this.idleMsAtEnd = loopIdleMs;
    this.unplacedAtEnd = unplaced;
  }

  /** Milliseconds of the request in which the event loop was busy, where it has made no call. */
  get busyMs(): number {
    const idleMs = Math.max(0, this.idleMsAtEnd - this.idleMsAtStart);
    return Math.max(0, this.durationMs - idleMs);
  }

  /** Made on demand, as {@link upstream}. */
  get time(): RequestTime {
    return this.split(this.durationMs, this.idleMsAtEnd, this.unplacedAtEnd);
  }

  /** Made on demand: most requests have no record. */
  get upstream(): readonly UpstreamUse[] {
    const uses = this.calls?.uses ?? [];
    return uses.filter(({ calls }) => calls > 0).map((use) => use.record);
  }

  /** The parts as of now: `upstreamMs`, `poolWaitMs`, `idleMs` and `busyMs` sum to `durationMs`. */
  split(durationMs: number, loopIdleMs: number, unplaced: number): RequestTime {
    const calls = this.calls ?? NO_CALLS;
    const upstreamMs = Math.min(durationMs, calls.upstreamMs);
    const poolWaitMs = Math.min(durationMs - upstreamMs, calls.poolWaitMs);
    const restMs = durationMs - upstreamMs - poolWaitMs;
    const restIdleMs = loopIdleMs - this.idleMsAtStart - calls.upstreamIdleMs - calls.poolWaitIdleMs;
    const idleMs = Math.min(restMs, Math.max(0, restIdleMs));
    return {
      upstreamMs,
      poolWaitMs,
      idleMs,
      busyMs: restMs - idleMs,
      upstreamBusyMs: Math.max(0, upstreamMs - calls.upstreamIdleMs),
      unplacedCalls: unplaced - this.unplacedAtStart,
    };
  }
}

/** Sums over the requests of one route, milliseconds. */
export class RouteTimes {
  /** All requests, aborted ones included. */
  ended = 0;
  durationMs = 0;
  /** Requests that completed; the sums below are theirs. */
  count = 0;
  upstreamMs = 0;
  poolWaitMs = 0;
  /** All busy time: that of `RequestTime` leaves out what overlaps a call. */
  busyMs = 0;
  /** The part of it in which a call was under way. */
  upstreamBusyMs = 0;

  /** A request that has made no call and waited for no connection. */
  addBusy(busyMs: number): void {
    this.count += 1;
    this.busyMs += busyMs;
  }

  add({ upstreamMs, poolWaitMs, busyMs, upstreamBusyMs }: RequestTime): void {
    this.count += 1;
    this.upstreamMs += upstreamMs;
    this.poolWaitMs += poolWaitMs;
    this.busyMs += busyMs + upstreamBusyMs;
    this.upstreamBusyMs += upstreamBusyMs;
  }
}

/** The times of a route; null before one of its requests has ended. */
export const readTimes = (route: Route): RouteTimes | null => route.times as RouteTimes | null;
