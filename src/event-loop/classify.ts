import type { BlockCause } from '../core/record.js';
import { beginsInSocketRead, runningFrames, SAFEPOINT_NAME, withoutProbe, type Frame } from './frame.js';
import { LATE_MS } from './timing.js';

/** One look at the blocked stack, as classification needs it. `S` names a request. */
export interface Look<S> {
  readonly requestedMs: number;
  readonly servedMs: number;
  readonly state: S | null;
  readonly source: 'sync' | 'slot' | 'store' | 'aside' | null;
  readonly frames: readonly Frame[];
  readonly cut: boolean;
  /** For a look that came too late to see its request: whose route function settled next. */
  readonly settledNext?: S | null;
  /** How long at most a garbage collection that was not observed may have held it up. */
  readonly unobservedGcMs?: number;
}

/** All that is known of a standstill. */
export interface Evidence<S> {
  readonly startMs: number;
  readonly endMs: number;
  readonly looks: readonly Look<S>[];
  /** Garbage collection inside it, as far as it was observed. */
  readonly gcMs: number;
  /** Since when it was observed; Infinity: it was not. */
  readonly gcSinceMs: number;
  /** Share of it that the main thread was on a CPU. */
  readonly cpuRatio: number;
  /** The watchdog itself was not scheduled. */
  readonly starvedMs: number;
  /** The main thread was runnable but not running; 0 where unknown. */
  readonly runDelayMs: number;
  /** The kernel held the process to its CPU limit around it. */
  readonly throttled: boolean;
  /** What would have been reported on a machine with CPUs to spare. */
  readonly thresholdMs: number;
  /** A debugger is attached: pauses look like blocks. */
  readonly debugged: boolean;
  /** Whether a request had ended by then. The standstill may begin some moments before: at the last proof that the loop turned. */
  endedBefore(state: S, ms: number): boolean;
}

/** What a standstill was. */
export interface Verdict<S> {
  readonly cause: BlockCause;
  /** Proven. */
  readonly culprit: S | null;
  /** Likely. */
  readonly suspect: S | null;
  readonly provenMs: number;
  /** The looks that show the proven run, or the whole background run; empty when nothing is proven. */
  readonly shown: readonly Look<S>[];
}

/** Share of the window that must be proven before anybody is named. */
const PROVEN_RATIO = 0.5;
const STARVED_FOR_SURE = 0.7;
const STARVED_RATIO = 0.5;
const GC_RATIO = 0.5;
const ON_CPU_RATIO = 0.5;
const IDLE_CPU_RATIO = 0.3;
const SOME_GC_RATIO = 0.25;
/** A request that happens to be preempted or to start a collection is seen once or twice. */
const MIN_LOOKS = 3;

interface Claim<S> {
  state: S | null;
  provenMs: number;
  /** Of it: what late looks were held up. */
  lateMs: number;
  /** Native time that a late look makes likely, without proof. */
  likelyMs: number;
  looks: Look<S>[];
  /** A look shows that it was inside a call of Node's that does not return before it is done. */
  insideCall: boolean;
}

/**
 * Decides who blocked the loop. Two rules keep innocents out:
 * A. Nobody is named for one look: a request must have been seen running, in looks that follow one another, for half of
 *    the window at least.
 * B. A look that came late proves that a native call ran (or a collection, or nothing at all), not whose. It counts where
 *    the stack shows that the call was made inside it; and it counts alone only where the stack shows the call itself. It
 *    does not count where a collection that was not observed may have been all of it.
 */
export function classify<S>(evidence: Evidence<S>): Verdict<S> {
  const windowMs = evidence.endMs - evidence.startMs;
  const starved = evidence.starvedMs / windowMs;
  const notRunning = Math.max(starved, evidence.runDelayMs / windowMs);
  const gc = gcRatioOf(evidence);
  const heldBackMs = Math.max(evidence.starvedMs, evidence.runDelayMs);
  const claims = claimsOf(evidence, heldBackMs);
  const best = claims.reduce<Claim<S> | null>((a, b) => (a === null || b.provenMs > a.provenMs ? b : a), null);
  const proven = best !== null && isProven(best, windowMs) ? best : null;
  const nobody = { culprit: null, suspect: null, provenMs: 0, shown: [] };

  // A request that was seen running all along and used a threshold's worth of CPU has blocked, however slow the machine.
  const blockedAnyway = proven?.state != null && evidence.cpuRatio * windowMs >= evidence.thresholdMs;
  // Without the time in which the limit kept it from running it would not have been reported.
  const throttled = evidence.throttled && windowMs - heldBackMs < evidence.thresholdMs;
  const machine =
    throttled || starved >= STARVED_FOR_SURE || (notRunning >= STARVED_RATIO && evidence.cpuRatio < ON_CPU_RATIO);
  if (machine && !blockedAnyway) {
    return { ...nobody, cause: 'not-scheduled' };
  }
  // Before `sync-io`: while helpers collect in parallel, the main thread is hardly on a CPU.
  if (gc >= GC_RATIO) {
    return { cause: 'gc', culprit: null, suspect: proven?.state ?? null, provenMs: 0, shown: proven?.looks ?? [] };
  }
  // Asleep, that is, neither on a CPU nor waiting for one.
  const offCpu = evidence.cpuRatio < IDLE_CPU_RATIO && evidence.cpuRatio + notRunning < ON_CPU_RATIO;
  if (evidence.debugged && offCpu) return { ...nobody, cause: 'unknown' };
  const running = offCpu && gc < SOME_GC_RATIO ? 'sync-io' : 'javascript';
  if (proven !== null) return named(proven, running, evidence);
  if (evidence.looks.length === 0) return { ...nobody, cause: 'unknown' };

  const likely = likelyOf(evidence, claims, windowMs);
  const doubtfulMs = evidence.looks.reduce(
    (sum, look) => sum + (mayBeGc(look, heldBackMs) ? look.servedMs - look.requestedMs : 0),
    0,
  );
  const doubtful = doubtfulMs >= PROVEN_RATIO * windowMs;
  if (likely !== null) return { ...nobody, cause: doubtful ? 'unknown' : running, suspect: likely.state };
  return { ...nobody, cause: evidence.looks.some((look) => look.cut && look.state === null) ? 'unknown' : 'pile-up' };
}

/** Share of the window that was garbage collection. The part that was not observed counts like the rest, up to half of that. */
function gcRatioOf<S>({ startMs, endMs, gcMs, gcSinceMs }: Evidence<S>): number {
  const windowMs = endMs - startMs;
  const observedMs = endMs - Math.max(startMs, gcSinceMs);
  if (observedMs <= 0) return 0;
  return (gcMs * (1 + Math.min((windowMs - observedMs) / observedMs, 0.5))) / windowMs;
}

function named<S>(claim: Claim<S>, cause: BlockCause, evidence: Evidence<S>): Verdict<S> {
  const { state, provenMs, looks } = claim;
  if (state === null) return { cause, culprit: null, suspect: null, provenMs, shown: looks };
  const trusted = looks.every((look) => isTrusted(look) && !evidence.endedBefore(state, look.servedMs));
  return { cause, culprit: trusted ? state : null, suspect: trusted ? null : state, provenMs, shown: looks };
}

/**
 * A connection that is shared (a database client's, say) runs its callbacks in the context of the request that happened
 * to open it; so the store alone proves nothing there. Nor of a request that waits for something else, but in its own callbacks.
 */
function isTrusted<S>(look: Look<S>): boolean {
  if (look.source === 'sync' || look.source === 'slot') return true;
  if (beginsInSocketRead(look.frames)) return false;
  return look.source !== 'aside' || isCalledBack(look);
}

/**
 * Whether Node calls back what was started in this context: a timer, a file, a stream; or RxJS does, which interceptors run in.
 * A job of a shared queue begins in a promise's reaction or tick, in the context of the job that was done before.
 */
function isCalledBack<S>({ frames, cut }: Look<S>): boolean {
  if (cut) return false;
  const running = runningFrames(withoutProbe(frames));
  const loop = running.findIndex(({ file }) => file !== null && RUNS_OTHERS.has(file));
  if (loop >= 0 && running[loop]!.file === TIMERS) return true;
  const file = running.at(loop < 0 ? -1 : loop - 1)?.file ?? '';
  return loop !== 0 && (file.startsWith('node:') || RXJS.test(file));
}

/** In a bundle it cannot be told. */
const RXJS = /[/\\]node_modules[/\\]rxjs[/\\]/;

const isProven = <S>(claim: Claim<S>, windowMs: number): boolean =>
  claim.provenMs >= PROVEN_RATIO * windowMs && (claim.looks.length >= MIN_LOOKS || claim.insideCall);

/** Each request's proven and likely time: one claim a request, and one for nobody's code. */
function claimsOf<S>({ looks, runDelayMs }: Evidence<S>, heldBackMs: number): Claim<S>[] {
  const claims = new Map<S | null, Claim<S>>();
  let before: Look<S> | null = null;
  for (const look of looks) {
    const claim = claims.get(look.state) ?? newClaim(look.state);
    claims.set(look.state, claim);
    claim.looks.push(look);
    const waitedMs = look.servedMs - look.requestedMs;
    const follows = before !== null && before.state === look.state && !(look.cut && look.state === null);
    if (waitedMs <= LATE_MS) {
      if (follows) claim.provenMs += look.servedMs - before!.servedMs;
    } else if (!mayBeGc(look, heldBackMs) && showsItsCall(look)) {
      claim.insideCall ||= showsNodeCall(look);
      claim.lateMs += waitedMs;
      claim.provenMs += follows ? look.servedMs - before!.servedMs : waitedMs;
    } else {
      claim.likelyMs += waitedMs;
      // Between the last look and the native call the same request ran on.
      if (follows) claim.provenMs += Math.max(0, look.requestedMs - before!.servedMs);
    }
    before = look;
  }
  // A look also comes late while the machine does not let the thread run: that much of the lateness proves nothing.
  for (const claim of claims.values()) {
    const doubtfulMs = Math.min(claim.lateMs, runDelayMs);
    claim.provenMs -= doubtfulMs;
    claim.likelyMs += doubtfulMs;
  }
  return [...claims.values()];
}

/** A collection may have been done before the look was served, nobody observed it, and it may be all that held the look up. */
const mayBeGc = <S>({ requestedMs, servedMs, unobservedGcMs = 0 }: Look<S>, heldBackMs: number): boolean =>
  unobservedGcMs > 0 && servedMs - requestedMs - heldBackMs <= unobservedGcMs;

const newClaim = <S>(state: S | null): Claim<S> => ({
  state,
  provenMs: 0,
  lateMs: 0,
  likelyMs: 0,
  looks: [],
  insideCall: false,
});

/**
 * Whether a late look was let in inside the very call that held it up: a synchronous function of Node's own that was
 * entered before (a callee or its second line runs now), or a safepoint.
 */
function showsNodeCall<S>(look: Look<S>): boolean {
  if (look.state === null) return false;
  if (look.frames.some(({ name }) => name === SAFEPOINT_NAME)) return true;
  const frames = withoutProbe(look.frames);
  for (let i = 0; i < frames.length; i++) {
    const { name, file, async, line, functionLine } = frames[i]!;
    if (async || (file !== null && (!file.startsWith('node:') || RUNS_OTHERS.has(file)))) return false;
    const entered = i > 0 || (functionLine > 0 && line > functionLine);
    if (entered && file !== null && (SYNC_FILES.test(file) || name?.endsWith('Sync') === true)) return true;
  }
  return false;
}

/** Where Node keeps what blocks: files, child processes, compression, cryptography. */
const SYNC_FILES = /^node:(?:fs$|child_process$|zlib$|internal\/(?:fs|crypto|child_process))/;

/**
 * Whether a native call that held a look up was made inside the stack that the look shows. The engine lets a waiting look
 * in when a function is entered, resumed or loops. So when the innermost function was called by another one that still
 * runs, that caller was entered before the native call had ended, or the look would have been served there.
 * With a single function running, it may have been resumed after somebody else's call.
 */
function showsItsCall<S>(look: Look<S>): boolean {
  if (look.state === null) return false;
  if (look.source === 'sync' || showsNodeCall(look)) return true;
  const frames = withoutProbe(look.frames);
  const end = frames.findIndex(({ async, file }) => async || (file !== null && RUNS_OTHERS.has(file)));
  return (end < 0 ? frames.length : end) >= 2;
}

const TIMERS = 'node:internal/timers';
/** Node's own loops over ticks, microtasks, timers and hooks: they call one request's code after another's. */
const RUNS_OTHERS: ReadonlySet<string> = new Set([
  'node:internal/process/task_queues',
  TIMERS,
  'node:internal/async_hooks',
]);

/** Who probably made the native calls that held the looks up. */
function likelyOf<S>({ looks }: Evidence<S>, claims: readonly Claim<S>[], windowMs: number): Claim<S> | null {
  const byState = new Map<S | null, Claim<S>>(claims.map((claim) => [claim.state, { ...claim }]));
  for (const look of looks) {
    const settled = look.settledNext ?? null;
    const waitedMs = look.servedMs - look.requestedMs;
    if (settled === null || waitedMs <= LATE_MS || showsItsCall(look)) continue;
    byState.get(look.state)!.likelyMs -= waitedMs;
    const claim = byState.get(settled) ?? newClaim(settled);
    claim.likelyMs += waitedMs;
    byState.set(settled, claim);
  }
  let best: Claim<S> | null = null;
  for (const claim of byState.values()) {
    const ms = claim.provenMs + claim.likelyMs;
    if (
      claim.likelyMs + claim.lateMs > 0 &&
      ms >= PROVEN_RATIO * windowMs &&
      (best === null || ms > best.provenMs + best.likelyMs)
    ) {
      best = claim;
    }
  }
  return best;
}
