import { getOrAdd } from '../core/get-or-add.js';
import type { RequestState } from '../request/request-state.js';
import type { Block } from './loop-watch.js';
import { isCalledBySharedHandle, isIdle, isInSyncIo, isOnlyResumed, type Sample } from './sample.js';

/** A sample that waited longer was delayed by a native call that V8 cannot interrupt. */
const LATE_MS = 5;
/** Before its request, a sample represents no more time than the sampler usually leaves between two. */
const MAX_GAP_MS = 35;
const MAX_GAP_SHARE = 0.05;
const HALF = 0.5;
/** Share of the block that the samples of a named request must represent: the sampler may have begun at its end. */
const LEAST_OF_BLOCK = 0.4;

/** The samples inside a block, counted by the request in whose async context each was taken. Each represents the time before it. */
export interface Votes {
  readonly winner: RequestState | null;
  /** The winner's context is proof: no shared handle started the code, and the stack shows whose it is. */
  readonly isCertain: boolean;
  readonly ran: ReadonlySet<RequestState>;
  readonly isSplit: boolean;
  /** Code outside of every request ran: a job, a timer. No shared handle called it, which could do a request's work. */
  readonly isBackground: boolean;
  readonly shown: readonly Sample[];
  readonly codeMs: number;
  readonly isSyncIo: boolean;
  readonly provenMs: number;
}

interface Vote {
  readonly sample: Sample;
  readonly ms: number;
}

/** From here on the engine itself keeps the store: it is empty where no code runs. */
const FIRST_NODE_WITH_FRAMES = 24;
const storeEndsWithCode = Number.parseInt(process.versions.node, 10) >= FIRST_NODE_WITH_FRAMES;

const isLate = ({ askedMs, atMs }: Sample): boolean => atMs - askedMs > LATE_MS;

/** A function that resumes behind a native call has no frame yet; its request is in the store already. */
const showsCode = (sample: Sample): boolean =>
  !isIdle(sample) || (storeEndsWithCode && sample.state !== null && isLate(sample));

const isInFlight = ({ endedMs }: RequestState, atMs: number): boolean => endedMs === 0 || endedMs > atMs;

/** `samples` in their order, since `block.sinceMs`. `lostMs`: the machine did not run the main thread, which delays samples and proves nothing. */
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

/** The context alone may be that of whoever opened a shared handle, or of the request after the one that made a native call. */
function isProof(votes: readonly Vote[], durationMs: number, lostMs: number): boolean {
  const lateMs = votes.reduce((sum, { sample }) => sum + sample.atMs - sample.askedMs, 0);
  if (sumMs(votes) - Math.min(lateMs, lostMs) < LEAST_OF_BLOCK * durationMs) return false;
  return !isMostly(votes, (sample) => isCalledBySharedHandle(sample) || (isLate(sample) && isOnlyResumed(sample)));
}

const isMostly = (votes: readonly Vote[], holds: (sample: Sample) => boolean): boolean =>
  sumMs(votes.filter(({ sample }) => holds(sample))) >= HALF * sumMs(votes);

export function measureInside({ startMs, endMs }: Pick<Block, 'startMs' | 'endMs'>, state: RequestState): number {
  const untilMs = state.endedMs > 0 ? Math.min(endMs, state.endedMs) : endMs;
  return Math.max(0, untilMs - Math.max(startMs, state.startedMs));
}
