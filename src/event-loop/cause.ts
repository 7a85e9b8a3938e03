import type { BlockCause } from '../core/record.js';
import type { RequestState } from '../request/request-state.js';
import type { Votes } from './block.js';
import type { Block } from './loop-watch.js';
import type { Sample } from './sample.js';

export interface Evidence extends Pick<Block, 'startMs' | 'endMs' | 'cpuRatio' | 'inPieces'> {
  readonly votes: Votes;
  readonly gcMs: number;
  /** Milliseconds in which the machine did not run the main thread; 0 where unknown. */
  readonly lostMs: number;
  readonly thresholdMs: number;
  readonly debugged: boolean;
}

export interface Verdict {
  readonly cause: BlockCause;
  readonly request: RequestState | null;
  readonly suspect: RequestState | null;
  /** False: the code that ran is unknown, so any request may be the cause, and none is counted as delayed. */
  readonly othersWaited: boolean;
  readonly provenMs: number;
  readonly shown: readonly Sample[];
}

/** This share decides alone: before Node 22.19 the CPU time is the whole process's. */
const LOST_FOR_SURE = 0.6;
/** Timers are late by some milliseconds on every machine. */
const SOME_LOST = 0.1;
const HALF = 0.5;
const SEEN_OFTEN = 3;
const SOME_GC_RATIO = 0.25;
const IDLE_CPU_RATIO = 0.3;

/** Decides the cause of a block, and which request is named for it. Null: the pause of a debugger, no block. */
export function findCause(evidence: Evidence): Verdict | null {
  const { votes, cpuRatio, gcMs, thresholdMs, inPieces, lostMs } = evidence;
  const { winner, isCertain, shown, provenMs } = votes;
  const windowMs = evidence.endMs - evidence.startMs;
  const lost = lostMs / windowMs;
  const isKnown = votes.codeMs >= HALF * windowMs;
  const nobody = { request: null, suspect: null, othersWaited: true, provenMs: 0, shown: [] };

  const asleep = cpuRatio < IDLE_CPU_RATIO && cpuRatio + lost < HALF;
  if (evidence.debugged && asleep) return null;
  // A request that was seen running all along and used a threshold's worth of CPU has blocked, however slow the machine.
  const isSeenOften = shown.length >= SEEN_OFTEN;
  const blockedAnyway = isCertain && isSeenOften && cpuRatio * windowMs >= thresholdMs;
  // Without the time that the machine took it would not have been reported.
  const isShort = lost >= SOME_LOST && windowMs - lostMs < thresholdMs;
  const machine = isShort || lost >= LOST_FOR_SURE || (lost >= HALF && cpuRatio < HALF);
  if (machine && !blockedAnyway) return { ...nobody, cause: 'not-scheduled', shown };
  // Before `sync-io`: while helpers collect in parallel, the main thread is hardly on a CPU.
  if (gcMs >= HALF * windowMs) return { ...nobody, cause: 'gc', suspect: winner, shown };
  if (inPieces) return { ...nobody, cause: 'pile-up' };
  if (shown.length === 0) return { ...nobody, cause: 'unknown', othersWaited: false };
  if (votes.isSplit) return { ...nobody, cause: 'pile-up', shown, othersWaited: isKnown };
  const cause = (asleep && gcMs < SOME_GC_RATIO * windowMs) || votes.isSyncIo ? 'sync-io' : 'javascript';
  // One sample of a thread that slept outside of Node's own calls: a virtual machine may have been suspended.
  const isProven = isCertain && (!asleep || votes.isSyncIo || isSeenOften);
  const [request, suspect] = isProven ? [winner, null] : [null, winner];
  // A suspect's handle, or a batch that an ended request began, may do the work of any request in flight.
  const othersWaited = request !== null || (votes.isBackground && isKnown);
  return { cause, request, suspect, othersWaited, provenMs, shown };
}
