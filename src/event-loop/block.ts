import type { RequestState } from '../request/request-state.js';
import type { Block } from './loop-watch.js';
import { isCalledBySharedHandle, isIdle, isInSyncIo, isOnlyResumed, type TakenSample } from './sample.js';

/** A sample that waited longer was held up by a native call that V8 cannot interrupt. */
export const LATE_MS = 5;
/** Before a sample was asked for, it represents no more time than the sampler usually leaves between two. */
const MAX_GAP_MS = 25;
const MAX_GAP_SHARE = 0.05;
/** Share of the samples' time that a context must have. */
const HALF = 0.5;
/** Share of the block that the samples of a named request must represent: the sampler may have begun at its end. */
const LEAST_OF_BLOCK = 0.4;
/** So much of its time in the context of another request would be chance. */
const SEEN_THROUGHOUT = 3;

/** The samples inside a block, counted by the request in whose async context each was taken. Each represents the time before it. */
export interface Votes {
  /** A request in flight in whose context at least half of the time ran. */
  readonly winner: RequestState | null;
  /** The winner's context is proof: no shared handle started the code, and the stack shows whose it is. */
  readonly isCertain: boolean;
  /** The winner was seen for half of the block itself, several times. */
  readonly ranThroughout: boolean;
  /** Requests in flight that were seen running. */
  readonly ran: ReadonlySet<RequestState>;
  /** No context had half of the time. */
  readonly isSplit: boolean;
  /** Code outside of every request ran: a job, a timer. No shared handle called it, which could do a request's work. */
  readonly isBackground: boolean;
  /** The samples that represent the block: the winner's, else all that show code. */
  readonly shown: readonly TakenSample[];
  /** Milliseconds that samples with code represent. */
  readonly codeMs: number;
  /** Half of the time of `shown` is in `…Sync` calls for files or processes. */
  readonly isSyncIo: boolean;
  /** The loop stood still at least from the first of `shown` to the last. */
  readonly provenMs: number;
}

interface Vote {
  readonly sample: TakenSample;
  readonly ms: number;
}

interface Candidate {
  readonly state: RequestState | null;
  readonly votes: Vote[];
  ms: number;
}

/** From here on the engine itself keeps the store: it is empty where no code runs. */
const FIRST_NODE_WITH_FRAMES = 24;
const storeEndsWithCode = Number.parseInt(process.versions.node, 10) >= FIRST_NODE_WITH_FRAMES;

const isLate = ({ askedMs, atMs }: TakenSample): boolean => atMs - askedMs > LATE_MS;

/** A function that resumes behind a native call has no frame yet; its request is in the store already. */
const isOfCode = (sample: TakenSample): boolean =>
  !isIdle(sample) || (storeEndsWithCode && sample.state !== null && isLate(sample));

const isInFlight = ({ endedMs }: RequestState, atMs: number): boolean => endedMs === 0 || endedMs > atMs;

/**
 * `samples` in the order in which they were taken, since `block.sinceMs`. `runDelayMs`: the main thread was runnable but not
 * running, which delays samples as a native call does, and proves nothing.
 */
export function countVotes(
  samples: readonly TakenSample[],
  block: Pick<Block, 'sinceMs' | 'startMs' | 'endMs'>,
  runDelayMs = 0,
): Votes {
  const votes = votesOf(samples, block.sinceMs);
  const candidates = new Map<RequestState | null, Candidate>();
  const ran = new Set<RequestState>();
  for (const vote of votes) {
    const { state } = vote.sample;
    if (state !== null && isInFlight(state, vote.sample.atMs)) ran.add(state);
    const candidate = candidates.get(state) ?? { state, votes: [], ms: 0 };
    candidates.set(state, candidate);
    candidate.votes.push(vote);
    candidate.ms += vote.ms;
  }
  const codeMs = sumMs(votes);
  const [most, next] = [...candidates.values()].toSorted((a, b) => b.ms - a.ms);
  const isSplit = most !== undefined && (most.ms < HALF * codeMs || most.ms === next?.ms);
  const best = most === undefined || isSplit ? null : most;
  const winner = best !== null && best.state !== null && ran.has(best.state) ? best.state : null;
  const shown = (best?.votes ?? votes).map(({ sample }) => sample);
  const durationMs = block.endMs - block.startMs;
  return {
    winner,
    isCertain: winner !== null && isProof(best!, durationMs, runDelayMs),
    ranThroughout: winner !== null && best!.ms >= HALF * durationMs && best!.votes.length >= SEEN_THROUGHOUT,
    ran,
    isSplit,
    isBackground: best !== null && best.state === null && !isMostly(best, isOfSharedHandle),
    shown,
    codeMs,
    isSyncIo: sumMs(votes.filter(({ sample }) => isInSyncIo(sample.frames))) >= Math.max(1, HALF * codeMs),
    provenMs: shown.length === 0 ? 0 : Math.min(durationMs, shown.at(-1)!.atMs - shown[0]!.askedMs),
  };
}

function votesOf(samples: readonly TakenSample[], sinceMs: number): Vote[] {
  const votes: Vote[] = [];
  let beforeMs = sinceMs;
  for (const sample of samples) {
    const askedMs = Math.max(beforeMs, sample.askedMs);
    const gapMs = Math.min(askedMs - beforeMs, MAX_GAP_MS + MAX_GAP_SHARE * (sample.atMs - sinceMs));
    beforeMs = sample.atMs;
    if (isOfCode(sample)) votes.push({ sample, ms: gapMs + sample.atMs - askedMs });
  }
  return votes;
}

const sumMs = (votes: readonly Vote[]): number => votes.reduce((sum, { ms }) => sum + ms, 0);

/** The context alone may be that of whoever opened a shared handle, or of the request after the one that made a native call. */
function isProof(candidate: Candidate, durationMs: number, runDelayMs: number): boolean {
  const lateMs = candidate.votes.reduce((sum, { sample }) => sum + sample.atMs - sample.askedMs, 0);
  if (candidate.ms - Math.min(lateMs, runDelayMs) < LEAST_OF_BLOCK * durationMs) return false;
  return !isMostly(candidate, (sample) => isOfSharedHandle(sample) || (isLate(sample) && isOnlyResumed(sample.frames)));
}

const isOfSharedHandle = ({ frames }: TakenSample): boolean => isCalledBySharedHandle(frames);

function isMostly({ votes, ms }: Candidate, holds: (sample: TakenSample) => boolean): boolean {
  return sumMs(votes.filter(({ sample }) => holds(sample))) >= HALF * ms;
}

/** Milliseconds of the block in which a request was in flight. */
export function msInside({ startMs, endMs }: Pick<Block, 'startMs' | 'endMs'>, state: RequestState): number {
  const untilMs = state.endedMs > 0 ? Math.min(endMs, state.endedMs) : endMs;
  return Math.max(0, untilMs - Math.max(startMs, state.startedMs));
}
