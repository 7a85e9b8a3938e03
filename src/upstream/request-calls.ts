import { entryOf } from '../core/entry-of.js';
import type { RequestTime, UpstreamUse } from '../core/record.js';
import type { TimeSplit } from '../request/request-state.js';
import type { Target } from './target.js';

/** The loop's clocks, milliseconds. */
export interface LoopClock {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** How long the event loop has waited for events since the process started. */
  readonly idleMs: () => number;
}

/** The time in which at least one call was under way, and how long the loop waited for events in it; milliseconds. */
export interface Union {
  readonly unionMs: number;
  readonly unionIdleMs: number;
}
export const NO_CALLS: Union = { unionMs: 0, unionIdleMs: 0 };

/** One timed call of a request. */
export interface OpenCall {
  readonly of: RequestCalls;
  readonly use: Use;
  /** With those that ask for the same; null: it is like no other. */
  readonly alike: Alike | null;
  readonly startedMs: number;
  /** Of a client that tells of a failure late: whether the call has failed already. */
  hasFailed?: () => boolean;
}

/** URLs and commands of one request that are told apart for one target. */
const MAX_SAME = 64;

/** Calls of one URL or command. */
class Alike {
  calls = 0;
  private open = 0;
  private sinceMs = 0;
  private unionMs = 0;
  private maxMs = 0;

  began(nowMs: number): void {
    if (this.open === 0) this.sinceMs = nowMs;
    this.open += 1;
  }

  ended({ startedMs }: OpenCall, nowMs: number): void {
    this.open -= 1;
    if (this.open === 0) this.unionMs += Math.max(0, nowMs - this.sinceMs);
    this.maxMs = Math.max(this.maxMs, nowMs - startedMs);
  }

  /** Milliseconds that one call in their place would save. */
  get repeatedMs(): number {
    return Math.max(0, this.unionMs - this.maxMs);
  }
}

class Use {
  calls = 0;
  wallMs = 0;
  maxMs = 0;
  errors = 0;
  /** How often each URL or command was asked for. */
  private readonly same = new Map<string, Alike>();

  constructor(readonly target: Target) {}

  asked(what: string): Alike | null {
    let alike = this.same.get(what);
    if (alike === undefined) {
      if (this.same.size >= MAX_SAME) return null;
      this.same.set(what, (alike = new Alike()));
    }
    alike.calls += 1;
    return alike;
  }

  /** The URL or command that was asked for most. */
  get mostAlike(): Alike {
    return [...this.same.values()].reduce((most, one) => (one.calls > most.calls ? one : most), new Alike());
  }

  took(ms: number): void {
    this.wallMs += ms;
    if (ms > this.maxMs) this.maxMs = ms;
  }
}

/** The upstream calls of one request, and the time in which at least one of them was under way. */
export class RequestCalls {
  private readonly uses = new Map<Target, Use>();
  private readonly open = new Set<OpenCall>();
  private timed = 0;
  private ended = false;
  // The union of its calls: what is over, and where the present stretch began.
  private unionMs = 0;
  private unionIdleMs = 0;
  private sinceMs = 0;
  private sinceIdleMs = 0;

  constructor(
    private readonly clock: LoopClock,
    private readonly maxTimed: number,
  ) {}

  /** A call begins; null when it is counted and not timed. */
  begin(target: Target, what: string | null, nowMs: number): OpenCall | null {
    const use = entryOf(this.uses, target, () => new Use(target));
    use.calls += 1;
    const alike = what === null ? null : use.asked(what);
    if (this.ended || this.timed >= this.maxTimed) return null;
    this.timed += 1;
    if (this.open.size === 0) {
      this.sinceMs = nowMs;
      this.sinceIdleMs = this.clock.idleMs();
    }
    alike?.began(nowMs);
    const call: OpenCall = { of: this, use, alike, startedMs: nowMs };
    this.open.add(call);
    return call;
  }

  /** A call ends; one that outlives its request was ended with it. */
  end(call: OpenCall, nowMs: number, failed: boolean): void {
    if (!this.open.delete(call)) return;
    if (failed) call.use.errors += 1;
    call.use.took(Math.max(0, nowMs - call.startedMs));
    call.alike?.ended(call, nowMs);
    if (this.open.size === 0) this.closeStretch(nowMs);
  }

  /** The request ends. */
  close(nowMs: number): void {
    this.ended = true;
    for (const call of this.open) this.end(call, nowMs, call.hasFailed?.() === true);
  }

  /** The union of its calls until now, and how long the loop was idle in it. */
  union(nowMs: number): Union {
    if (this.open.size > 0) {
      this.closeStretch(nowMs);
      this.sinceMs = nowMs;
      this.sinceIdleMs = this.clock.idleMs();
    }
    const { unionMs, unionIdleMs } = this;
    return { unionMs, unionIdleMs };
  }

  /** For each target, what it was asked. */
  *rows(): Generator<{ target: Target; use: UpstreamUse; mostAlike: Alike }> {
    for (const { target, calls, wallMs, maxMs, errors, mostAlike } of this.uses.values()) {
      yield { target, use: { target: target.name, kind: target.kind, calls, wallMs, maxMs, errors }, mostAlike };
    }
  }

  private closeStretch(nowMs: number): void {
    const ms = Math.max(0, nowMs - this.sinceMs);
    this.unionMs += ms;
    this.unionIdleMs += Math.min(ms, Math.max(0, this.clock.idleMs() - this.sinceIdleMs));
  }
}

const NO_USES: readonly UpstreamUse[] = [];

/** Where the time of one request goes. Milliseconds. */
export class RequestTimer implements TimeSplit {
  calls: RequestCalls | null = null;
  upstream = NO_USES;
  upstreamMs = 0;
  idleMs = 0;
  busyMs = 0;
  upstreamBusyMs = 0;
  private unplacedCalls = 0;

  constructor(
    private readonly idleMsAtStart: number,
    private readonly unplacedAtStart: number,
  ) {}

  /** Its parts as of now; `durationMs` is the sum of the first three. */
  measure(durationMs: number, loopIdleMs: number, unplaced: number, union: Union): void {
    this.upstreamMs = Math.min(durationMs, union.unionMs);
    const restMs = durationMs - this.upstreamMs;
    this.idleMs = Math.min(restMs, Math.max(0, loopIdleMs - this.idleMsAtStart - union.unionIdleMs));
    this.busyMs = restMs - this.idleMs;
    this.upstreamBusyMs = Math.max(0, this.upstreamMs - union.unionIdleMs);
    this.unplacedCalls = unplaced - this.unplacedAtStart;
  }

  get time(): RequestTime {
    const { upstreamMs, idleMs, busyMs, upstreamBusyMs, unplacedCalls } = this;
    return { upstreamMs, idleMs, busyMs, upstreamBusyMs, unplacedCalls };
  }
}
