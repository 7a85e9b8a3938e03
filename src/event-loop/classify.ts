import type { BlockCause } from '../core/record.js';
import {
  beginsInForeignRead,
  beginsInRequest,
  isCalledBack,
  isSharedCallback,
  type Look,
  showsItsCall,
  showsNodeCall,
} from './frame.js';
import { LATE_MS } from './beat.js';
import type { Block } from './loop-watch.js';

export interface Evidence<S> extends Pick<Block, 'startMs' | 'endMs' | 'cpuRatio'> {
  /** No part of it was long: the loop came late because many had to run. */
  readonly inPieces: boolean;
  readonly looks: readonly Look<S>[];
  readonly gcMs: number;
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
  /** Whether stacks are known to read on this Node as they must; else nobody is proven. */
  readonly stacksTrusted: boolean;
  /** Whether a request had ended by then. The block may begin some moments before: at the last proof that the loop turned. */
  endedBefore(state: S, ms: number): boolean;
  /** Who may have run at a look that shows no request; null: nobody is likelier than others. */
  suspectAt(look: Look<S>): S | null;
  /** Whether the request of a look, which only the store tells, may do others' work too. */
  sharesWork(look: Look<S>): boolean;
  /** Who was the first to get on after it; null: nobody did. */
  readonly firstOn: S | null;
  readonly alone: S | null;
}

export interface Classification<S> {
  readonly cause: BlockCause;
  readonly culprit: S | null;
  readonly suspect: S | null;
  /** Who waited: all but those named or seen running; those whose code would have been seen; or it cannot be told. */
  readonly waited: 'others' | 'seen' | 'unknown';
  /** Who was seen running where nobody's code was the cause; they may have waited less than the others. */
  readonly ran: readonly S[];
  readonly provenMs: number;
  /** The looks that show the proven run, or the whole run of unknown code; empty when there is none. */
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

/** What runs so long after the end of its request is not likelier its work than anybody's. */
const LEFT_BEHIND_MS = 5_000;

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

const NOBODY = { culprit: null, suspect: null, waited: 'unknown', ran: [], provenMs: 0, shown: [] } as const;

/** Decides who blocked the loop. Nobody is named but for half of the window, in looks that follow one another. */
export function classify<S>(evidence: Evidence<S>): Classification<S> {
  const windowMs = evidence.endMs - evidence.startMs;
  const starved = evidence.starvedMs / windowMs;
  const notRunning = Math.max(starved, evidence.runDelayMs / windowMs);
  const gc = evidence.gcMs / windowMs;
  const claims = claimsOf(evidence);
  const best = claims.reduce<Claim<S> | null>((a, b) => (a === null || b.provenMs > a.provenMs ? b : a), null);
  const proven = best !== null && isProven(best, windowMs) ? best : null;
  const ran = claims.map(({ state }) => state).filter((state) => state !== null);
  const nobodys = { ...NOBODY, ran, waited: waitedFor(best, evidence) };

  // A request that was seen running all along and used a threshold's worth of CPU has blocked, however slow the machine.
  const blockedAnyway = proven?.state != null && evidence.cpuRatio * windowMs >= evidence.thresholdMs;
  // Without the time in which the limit kept it from running it would not have been reported.
  const heldBackMs = Math.max(evidence.starvedMs, evidence.runDelayMs);
  const throttled = evidence.throttled && windowMs - heldBackMs < evidence.thresholdMs;
  const machine =
    throttled || starved >= STARVED_FOR_SURE || (notRunning >= STARVED_RATIO && evidence.cpuRatio < ON_CPU_RATIO);
  if (machine && !blockedAnyway) return { ...nobodys, cause: 'not-scheduled' };
  // Before `sync-io`: while helpers collect in parallel, the main thread is hardly on a CPU.
  if (gc >= GC_RATIO) {
    const { state = null, looks = [] } = proven ?? {};
    return { ...nobodys, cause: 'gc', suspect: state, shown: looks };
  }
  // Asleep, that is, neither on a CPU nor waiting for one.
  const offCpu = evidence.cpuRatio < IDLE_CPU_RATIO && evidence.cpuRatio + notRunning < ON_CPU_RATIO;
  if (evidence.debugged && offCpu) return { ...NOBODY, cause: 'unknown' };
  const running = offCpu && gc < SOME_GC_RATIO ? 'sync-io' : 'javascript';
  if (proven !== null) return named(proven, running, evidence);
  if (evidence.inPieces) return { ...nobodys, cause: 'pile-up' };
  if (evidence.looks.length === 0) return { ...NOBODY, cause: 'unknown' };

  const likely = likelyOf(evidence, claims, windowMs);
  if (likely !== null) {
    const suspect = likely.state ?? unseenOf(likely.looks, evidence);
    return { ...NOBODY, cause: running, suspect };
  }
  const [only] = ran;
  // Nobody else was seen, though not for long enough: the watchdog was booting, or held back.
  const seenAlone = claims.length === 1 && (evidence.looks.length > 1 || evidence.alone === only);
  // A process that was stopped has no suspect.
  if (only !== undefined && seenAlone && evidence.cpuRatio >= ON_CPU_RATIO) {
    return { ...NOBODY, cause: running, suspect: only, shown: evidence.looks };
  }
  // One alone may have run all along, unseen: on a machine without a free core, say.
  const cut = evidence.looks.some((look) => look.cut && look.state === null);
  return cut || claims.length === 1 ? { ...NOBODY, cause: 'unknown' } : { ...nobodys, cause: 'pile-up' };
}

function named<S>(claim: Claim<S>, cause: BlockCause, evidence: Evidence<S>): Classification<S> {
  const { state, provenMs, looks } = claim;
  const nobody = { ...NOBODY, cause, provenMs, shown: looks };
  if (state === null) return { ...nobody, suspect: unseenOf(looks, evidence), waited: waitedFor(claim, evidence) };
  if (isItsCode(claim, evidence)) return { ...nobody, culprit: state, waited: 'others' };
  // What it has started and left behind is the application's by now: an interval, a worker.
  const isLeft = evidence.endedBefore(state, looks[0]!.servedMs - LEFT_BEHIND_MS);
  return { ...nobody, suspect: isLeft ? null : state };
}

/** Whether what ran in the context of a request was its own code for sure, and no other's. */
const isItsCode = <S>({ state, looks }: Claim<S>, evidence: Evidence<S>): boolean =>
  state !== null &&
  evidence.stacksTrusted &&
  looks.every((look) => isTrusted(look, evidence) && !evidence.endedBefore(state, look.servedMs));

/** Who waited while the code of a claim ran, apart from its request. */
function waitedFor<S>(claim: Claim<S> | null, evidence: Evidence<S>): Classification<S>['waited'] {
  if (claim === null || isItsCode(claim, evidence)) return 'others';
  return claim.looks.every(({ unknown }) => unknown === 'background') ? 'seen' : 'unknown';
}

/** Whom the first and the last look at unseen code make likeliest, if they agree. */
function unseenOf<S>(looks: readonly Look<S>[], evidence: Evidence<S>): S | null {
  if (looks.some(({ unknown }) => unknown === 'disputed')) return null;
  const suspect = evidence.suspectAt(looks[0]!);
  return suspect === evidence.suspectAt(looks.at(-1)!) ? suspect : null;
}

/**
 * A connection that is shared (a database client's, say) runs its callbacks in the context of the request that happened
 * to open it; so the store alone proves nothing there. Nor does it where a queue or a batch may do another's work.
 */
function isTrusted<S>(look: Look<S>, evidence: Evidence<S>): boolean {
  if (look.source === 'sync' || look.source === 'named') return true;
  if (beginsInForeignRead(look.frames)) return false;
  if (look.source === 'aside' && !isItsCallback(look, evidence.firstOn)) return false;
  return beginsInRequest(look.frames) || !evidence.sharesWork(look);
}

/**
 * Whether a callback is of the request in whose context it was asked for. A timer, a worker or a socket may be shared by all who
 * came after: it is its own where it is the one to get on as of it. Of a file or a stream, where nobody else does.
 */
function isItsCallback<S>(look: Look<S>, firstOn: S | null): boolean {
  if (!isCalledBack(look)) return false;
  return firstOn === look.state || (firstOn === null && !isSharedCallback(look.frames));
}

const isProven = <S>(claim: Claim<S>, windowMs: number): boolean =>
  claim.provenMs >= PROVEN_RATIO * windowMs && (claim.looks.length >= MIN_LOOKS || claim.insideCall);

/** Each request's proven and likely time: one claim a request, and one for nobody's code. */
function claimsOf<S>({ looks, runDelayMs }: Evidence<S>): Claim<S>[] {
  const claims = new Map<S | null, Claim<S>>();
  let before: Look<S> | null = null;
  for (const look of looks) {
    const claim = claims.get(look.state) ?? newClaim(look.state);
    claims.set(look.state, claim);
    claim.looks.push(look);
    const waitedMs = look.servedMs - look.requestedMs;
    const follows = before !== null && before.state === look.state && !(look.cut && look.state === null);
    // A look that came late proves that a native call ran, and whose only where the stack shows the call.
    if (!isLate(look)) {
      if (follows) claim.provenMs += look.servedMs - before!.servedMs;
    } else if (showsItsCall(look)) {
      claim.insideCall ||= showsNodeCall(look);
      claim.lateMs += waitedMs;
      claim.provenMs += follows ? look.servedMs - before!.servedMs : waitedMs;
    } else if (follows) {
      // Between the last look and the native call the same request ran on.
      claim.provenMs += Math.max(0, look.requestedMs - before!.servedMs);
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

const isLate = ({ requestedMs, servedMs }: Look<unknown>): boolean => servedMs - requestedMs > LATE_MS;

function newClaim<S>(state: S | null): Claim<S> {
  return { state, provenMs: 0, lateMs: 0, likelyMs: 0, looks: [], insideCall: false };
}

/** Who probably made the native calls that held the looks up. */
function likelyOf<S>({ looks }: Evidence<S>, claims: readonly Claim<S>[], windowMs: number): Claim<S> | null {
  const byState = new Map<S | null, Claim<S>>(claims.map((claim) => [claim.state, claim]));
  for (const look of looks) {
    if (!isLate(look) || showsItsCall(look)) continue;
    const state = look.settledNext ?? look.state;
    const claim = byState.get(state) ?? newClaim(state);
    byState.set(state, claim);
    claim.likelyMs += look.servedMs - look.requestedMs;
  }
  const msOf = ({ provenMs, likelyMs }: Claim<S>): number => provenMs + likelyMs;
  const likely = [...byState.values()].filter(
    (claim) => claim.likelyMs + claim.lateMs > 0 && msOf(claim) >= PROVEN_RATIO * windowMs,
  );
  return likely.toSorted((a, b) => msOf(b) - msOf(a))[0] ?? null;
}
