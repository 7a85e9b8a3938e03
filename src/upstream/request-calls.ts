import { entryOf } from '../core/entry-of.js';
import type { UpstreamUse } from '../core/record.js';
import type { Target } from './target.js';

/** The loop's clocks, milliseconds. */
export interface LoopClock {
  /** Monotonic. */
  readonly nowMs: () => number;
  /** How long the event loop has waited for events since the process started. */
  readonly idleMs: () => number;
}

/** Time that a request spent in one way, and how long the event loop was idle in it; milliseconds. */
export class Stretch {
  ms = 0;
  idleMs = 0;
}

/** One timed call of a request. */
export interface OpenCall {
  readonly of: RequestCalls;
  readonly use: Use;
  /** Calls for the same URL or command; null: this one is like no other. */
  readonly alike: Alike | null;
  readonly startedMs: number;
  /** Whether the call has failed already, for a client that reports failures late. */
  hasFailed?: () => boolean;
}

/** One wait of a request for a connection of a pool. */
export interface OpenWait {
  readonly of: RequestCalls;
  readonly target: Target;
  readonly startedMs: number;
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
  /** Calls by URL or command. */
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

  /** The most frequent URL or command. */
  get mostAlike(): Alike {
    return [...this.same.values()].reduce((most, one) => (one.calls > most.calls ? one : most), new Alike());
  }

  took(ms: number): void {
    this.wallMs += ms;
    if (ms > this.maxMs) this.maxMs = ms;
  }
}

/** The upstream calls of one request, its waits for connections, and the time that it spent with either. */
export class RequestCalls {
  /** At least one call was under way. */
  readonly upstream = new Stretch();
  /** No call was under way, and the request waited for a connection. */
  readonly poolWait = new Stretch();
  /** Milliseconds of waits for connections by pool; waits at the same time count each. */
  readonly waits = new Map<Target, number>();
  private readonly uses = new Map<Target, Use>();
  private readonly open = new Set<OpenCall>();
  private readonly waiting = new Set<OpenWait>();
  private timed = 0;
  private ended = false;
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
    if (this.open.size === 0) this.turn(nowMs);
    alike?.began(nowMs);
    const call: OpenCall = { of: this, use, alike, startedMs: nowMs };
    this.open.add(call);
    return call;
  }

  /** A call ends; one that outlives its request was ended with it. */
  end(call: OpenCall, nowMs: number, failed: boolean): void {
    if (!this.open.has(call)) return;
    if (this.open.size === 1) this.turn(nowMs);
    this.open.delete(call);
    if (failed) call.use.errors += 1;
    call.use.took(Math.max(0, nowMs - call.startedMs));
    call.alike?.ended(call, nowMs);
  }

  beginWait(target: Target, nowMs: number): OpenWait | null {
    if (this.ended) return null;
    if (this.open.size === 0 && this.waiting.size === 0) this.turn(nowMs);
    const wait = { of: this, target, startedMs: nowMs };
    this.waiting.add(wait);
    return wait;
  }

  endWait(wait: OpenWait, nowMs: number): void {
    if (!this.waiting.has(wait)) return;
    if (this.open.size === 0 && this.waiting.size === 1) this.turn(nowMs);
    this.waiting.delete(wait);
    this.waits.set(wait.target, (this.waits.get(wait.target) ?? 0) + Math.max(0, nowMs - wait.startedMs));
  }

  /** The request ends. */
  close(nowMs: number): void {
    this.ended = true;
    for (const call of this.open) this.end(call, nowMs, call.hasFailed?.() === true);
    for (const wait of this.waiting) this.endWait(wait, nowMs);
  }

  /** Adds the time since the last change to what it was spent with. */
  turn(nowMs: number): void {
    const idleMs = this.clock.idleMs();
    const spent = this.open.size > 0 ? this.upstream : this.waiting.size > 0 ? this.poolWait : null;
    if (spent !== null) {
      const ms = Math.max(0, nowMs - this.sinceMs);
      spent.ms += ms;
      spent.idleMs += Math.min(ms, Math.max(0, idleMs - this.sinceIdleMs));
    }
    this.sinceMs = nowMs;
    this.sinceIdleMs = idleMs;
  }

  /** One row a target. */
  *rows(): Generator<{ target: Target; use: UpstreamUse; mostAlike: Alike }> {
    for (const { target, calls, wallMs, maxMs, errors, mostAlike } of this.uses.values()) {
      yield { target, use: { target: target.name, kind: target.kind, calls, wallMs, maxMs, errors }, mostAlike };
    }
  }
}
