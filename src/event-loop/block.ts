import { getOrAdd } from '../core/get-or-add.js';
import type { BlockCause } from '../core/record.js';
import type { RequestState } from '../request/request-state.js';
import type { Block } from './loop-watch.js';
import { isCalledBySharedHandle, isIdle, isInSyncIo, isOnlyResumed, type Sample } from './sample.js';

/** Everything that is known of a block. */
export interface Evidence extends Pick<Block, 'startMs' | 'endMs' | 'cpuRatio' | 'inPieces'> {
  readonly votes: Votes;
  readonly gcMs: number;
  /** Milliseconds in which the machine did not run the main thread; 0 where unknown. */
  readonly lostMs: number;
  readonly thresholdMs: number;
  /** Whether a debugger may have paused the main thread. */
  readonly debugged: boolean;
}

export interface Classification {
  readonly cause: BlockCause;
  readonly request: RequestState | null;
  readonly suspect: RequestState | null;
  /** False: any request in flight may have run, so none is counted as delayed. */
  readonly othersWaited: boolean;
  readonly provenMs: number;
  /** The samples that may name the block's line. */
  readonly shown: readonly Sample[];
}

const HALF = 0.5;
/** This share of lost time decides without the CPU time, which is the whole process's before Node 22.19. */
const LOST_FOR_SURE = 0.6;
/** A smaller share of lost time means nothing: timers are late by some milliseconds on every machine. */
const SOME_LOST = 0.1;
const SEEN_OFTEN = 3;
const SOME_GC_RATIO = 0.25;
const IDLE_CPU_RATIO = 0.3;

/** Decides the cause of a block, and which request is named for it. Null: a debugger's pause, which is no block. */
export function classifyBlock(evidence: Evidence): Classification | null {
  const { votes, cpuRatio, gcMs, thresholdMs, inPieces, lostMs } = evidence;
  const { winner, isCertain, shown, provenMs } = votes;
  const windowMs = evidence.endMs - evidence.startMs;
  const lost = lostMs / windowMs;
  const isKnown = votes.codeMs >= HALF * windowMs;
  const nobody = { request: null, suspect: null, othersWaited: true, provenMs: 0, shown: [] };

  // Neither on a CPU nor kept from one by the machine: in a system call.
  const asleep = cpuRatio < IDLE_CPU_RATIO && cpuRatio + lost < HALF;
  if (evidence.debugged && asleep) return null;
  const isSeenOften = shown.length >= SEEN_OFTEN;
  // Without the lost time it would not have been reported.
  const isShort = lost >= SOME_LOST && windowMs - lostMs < thresholdMs;
  const isStarved = isShort || lost >= LOST_FOR_SURE || (lost >= HALF && cpuRatio < HALF);
  // A request that has used CPU for longer than the threshold has blocked, however slow the machine is.
  const blockedAnyway = isCertain && isSeenOften && cpuRatio * windowMs >= thresholdMs;
  if (isStarved && !blockedAnyway) return { ...nobody, cause: 'not-scheduled', shown };
  // Before `sync-io`: the main thread sleeps while V8's helper threads collect.
  if (gcMs >= HALF * windowMs) return { ...nobody, cause: 'gc', suspect: winner, shown };
  if (inPieces) return { ...nobody, cause: 'pile-up' };
  if (shown.length === 0) return { ...nobody, cause: 'unknown', othersWaited: false };
  if (votes.isSplit) return { ...nobody, cause: 'pile-up', shown, othersWaited: isKnown };
  const cause = (asleep && gcMs < SOME_GC_RATIO * windowMs) || votes.isSyncIo ? 'sync-io' : 'javascript';
  // Few samples of a thread that slept, though not in a call of Node's: the virtual machine may have been suspended.
  const isProven = isCertain && (!asleep || votes.isSyncIo || isSeenOften);
  const [request, suspect] = isProven ? [winner, null] : [null, winner];
  // A shared handle, or a batch that an ended request began, may do the work of any request in flight.
  const othersWaited = request !== null || (votes.isBackground && isKnown);
  return { cause, request, suspect, othersWaited, provenMs, shown };
}

/** A sample that waited longer was delayed by a native call that V8 cannot interrupt. */
const LATE_MS = 5;
/** A sample represents the time since the one before it, up to this and this share of the block so far: the sampler's usual gap. */
const MAX_GAP_MS = 35;
const MAX_GAP_SHARE = 0.05;
/** Samples of a named request must represent this share of the block: the sampler may have begun near its end. */
const LEAST_OF_BLOCK = 0.4;

/** The samples of a block, added up by the request in whose async context each was taken, by the time that each represents. */
export interface Votes {
  /** The request in flight with most of the time; null: it was code of none, or {@link isSplit}. */
  readonly winner: RequestState | null;
  /** The winner's context is proof: its stack shows that no shared handle called. */
  readonly isCertain: boolean;
  /** Every request in flight whose code was met. */
  readonly ran: ReadonlySet<RequestState>;
  /** No request, and no code outside of requests, has at least half of the time alone. */
  readonly isSplit: boolean;
  /** Most of it was code outside of requests (a job, a timer), which no shared handle called. */
  readonly isBackground: boolean;
  /** The winner's samples; all where it is split. */
  readonly shown: readonly Sample[];
  /** The time that all samples together represent. */
  readonly codeMs: number;
  readonly isSyncIo: boolean;
  readonly provenMs: number;
}

interface Vote {
  readonly sample: Sample;
  readonly ms: number;
}

/** From Node 24 on V8 keeps the context store, so that it is empty while no code runs. */
const FIRST_NODE_WITH_CONTEXT_IN_V8 = 24;
const storeEndsWithCode = Number.parseInt(process.versions.node, 10) >= FIRST_NODE_WITH_CONTEXT_IN_V8;

const isLate = ({ askedMs, atMs }: Sample): boolean => atMs - askedMs > LATE_MS;

/** A late sample without frames shows code, too: a function resumes behind a native call, and only its request is in the store yet. */
const showsCode = (sample: Sample): boolean =>
  !isIdle(sample) || (storeEndsWithCode && sample.state !== null && isLate(sample));

const isInFlight = ({ endedMs }: RequestState, atMs: number): boolean => endedMs === 0 || endedMs > atMs;

/** `samples` in their order, since `block.sinceMs`. `lostMs`: a sample that waited for a CPU proves nothing for so long. */
export function countVotes(
  samples: readonly Sample[],
  block: Pick<Block, 'sinceMs' | 'startMs' | 'endMs'>,
  lostMs = 0,
): Votes {
  const votes = weighSamples(samples, block.sinceMs);
  const byState = new Map<RequestState | null, Vote[]>();
  const ran = new Set<RequestState>();
  for (const vote of votes) {
    const { state, atMs } = vote.sample;
    getOrAdd(byState, state, () => []).push(vote);
    if (state !== null && isInFlight(state, atMs)) ran.add(state);
  }
  const codeMs = sumMs(votes);
  const [most = [], next = []] = [...byState.values()].toSorted((a, b) => sumMs(b) - sumMs(a));
  const isSplit = most.length > 0 && (sumMs(most) < HALF * codeMs || sumMs(most) === sumMs(next));
  const best = isSplit ? [] : most;
  const state = best[0]?.sample.state ?? null;
  const winner = state !== null && ran.has(state) ? state : null;
  const shown = (isSplit ? votes : best).map(({ sample }) => sample);
  const durationMs = block.endMs - block.startMs;
  return {
    winner,
    isCertain: winner !== null && isProof(best, durationMs, lostMs),
    ran,
    isSplit,
    isBackground: best.length > 0 && state === null && !isMostly(best, isCalledBySharedHandle),
    shown,
    codeMs,
    isSyncIo: codeMs > 0 && isMostly(votes, isInSyncIo),
    provenMs: shown.length === 0 ? 0 : Math.min(durationMs, shown.at(-1)!.atMs - shown[0]!.askedMs),
  };
}

function weighSamples(samples: readonly Sample[], sinceMs: number): Vote[] {
  const votes: Vote[] = [];
  let beforeMs = sinceMs;
  for (const sample of samples) {
    const askedMs = Math.max(beforeMs, sample.askedMs);
    const gapMs = Math.min(askedMs - beforeMs, MAX_GAP_MS + MAX_GAP_SHARE * (sample.atMs - sinceMs));
    beforeMs = sample.atMs;
    if (showsCode(sample)) votes.push({ sample, ms: gapMs + sample.atMs - askedMs });
  }
  return votes;
}

const sumMs = (votes: readonly Vote[]): number => votes.reduce((sum, { ms }) => sum + ms, 0);

/** A context proves nothing below a shared handle, which another request may have opened, or behind a native call of the request before. */
function isProof(votes: readonly Vote[], durationMs: number, lostMs: number): boolean {
  const lateMs = votes.reduce((sum, { sample }) => sum + sample.atMs - sample.askedMs, 0);
  if (sumMs(votes) - Math.min(lateMs, lostMs) < LEAST_OF_BLOCK * durationMs) return false;
  return !isMostly(votes, (sample) => isCalledBySharedHandle(sample) || (isLate(sample) && isOnlyResumed(sample)));
}

const isMostly = (votes: readonly Vote[], holds: (sample: Sample) => boolean): boolean =>
  sumMs(votes.filter(({ sample }) => holds(sample))) >= HALF * sumMs(votes);

/** Milliseconds of a block in which a request was in flight. */
export function measureOverlap({ startMs, endMs }: Pick<Block, 'startMs' | 'endMs'>, state: RequestState): number {
  const untilMs = state.endedMs > 0 ? Math.min(endMs, state.endedMs) : endMs;
  return Math.max(0, untilMs - Math.max(startMs, state.startedMs));
}
