import type { Answer } from './client.js';
import { Latencies } from './figures.js';
import { pace } from './pacer.js';
import { showProgress } from './progress.js';
import type { TrafficRequest } from './traffic.js';

/** A start that is later than this says nothing of the server. */
const LATE_MS = 5;
const MAX_LATE_SHARE = 0.05;
const MAX_OWN_CPU = 0.9;
/** What this machine lacks, not the server. */
const OWN_FAILURES = ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS'];
/** Nothing that serves anybody lets so many wait. */
const MAX_IN_FLIGHT = 10_000;

export interface Outcome extends Answer {
  readonly index: number;
  readonly request: TrafficRequest;
  /** From the intended start to the end of the answer. */
  readonly latencyMs: number;
  readonly failed: boolean;
}

/** What a run of intended starts came to. */
export interface LoadResult {
  readonly sent: number;
  readonly latencies: Latencies;
  /** Why answers count as failed: `'timeout'`, `'503'`. */
  readonly failures: ReadonlyMap<string, number>;
  readonly failed: number;
  /** Answers with another status than the recording has, by `'200 → 401'`. */
  readonly otherStatus: ReadonlyMap<string, number>;
  /** Share of starts that were late, 0 to 1. */
  readonly lateShare: number;
  /** CPU that this process took while it started requests, cores. */
  readonly ownCpu: number;
  /** Nothing was sent any more since so many were waiting. */
  readonly overrun: boolean;
  /** Why it says nothing of the server; null when it does. */
  readonly voidBecause: string | null;
}

export type Send = (request: TrafficRequest, index: number) => Promise<Answer>;

export interface OpenLoop {
  readonly offsetsMs: Float64Array;
  readonly requestAt: (index: number) => TrafficRequest;
  readonly send: Send;
  readonly ended?: (outcome: Outcome) => void;
  /** When the last has started; others may still be in flight. */
  readonly allStarted?: () => void;
}

/** Starts each request at its time, whatever has become of those before (an open model), and waits for all answers. */
export async function runOpenLoop({ offsetsMs, requestAt, send, ended, allStarted }: OpenLoop): Promise<LoadResult> {
  const latencies = new Latencies();
  const failures = new Map<string, number>();
  const otherStatus = new Map<string, number>();
  let [sent, late, failed, inFlight, overrun] = [0, 0, 0, 0, false];
  let cpuBefore = process.cpuUsage();
  let idle = (): void => {};

  const ask = async (index: number, startMs: number, nowMs: () => number): Promise<void> => {
    const request = requestAt(index);
    const answer = await send(request, index);
    inFlight -= 1;
    const latencyMs = nowMs() - startMs;
    const asRecorded = answer.status === request.status;
    const isFailure = answer.failure !== null || (answer.status >= 500 && !asRecorded);
    // One that was refused at once was not fast.
    if (answer.failure === null || answer.failure === 'timeout') latencies.add(latencyMs);
    if (isFailure) {
      failed += 1;
      count(failures, answer.failure ?? String(answer.status));
    }
    if (answer.failure === null && request.status !== null && !asRecorded)
      count(otherStatus, `${request.status} → ${answer.status}`);
    ended?.({ ...answer, index, request, latencyMs, failed: isFailure });
    if (inFlight === 0) idle();
  };

  const done = showProgress(() => `${sent} of ${offsetsMs.length} sent, ${inFlight} waiting for their answer`);
  const { nowMs } = await pace(offsetsMs, (index, pace) => {
    if (inFlight >= MAX_IN_FLIGHT) {
      overrun = true;
      pace.cancel();
      return;
    }
    if (index === 0) cpuBefore = process.cpuUsage();
    const intendedMs = offsetsMs[index]!;
    const reallyMs = pace.nowMs();
    if (reallyMs - intendedMs > LATE_MS) late += 1;
    sent += 1;
    inFlight += 1;
    void ask(index, Math.min(intendedMs, reallyMs), pace.nowMs);
  });
  const { user, system } = process.cpuUsage(cpuBefore);
  const ownCpu = (user + system) / 1_000 / Math.max(nowMs(), 1);
  allStarted?.();
  if (inFlight > 0) await new Promise<void>((resolve) => void (idle = resolve));
  done();
  const lateShare = sent === 0 ? 0 : late / sent;
  return {
    sent,
    latencies,
    failures,
    failed,
    otherStatus,
    lateShare,
    ownCpu,
    overrun,
    voidBecause: voidBecause(lateShare, ownCpu) ?? ownFailure(failures),
  };
}

/** The generator, not the server, was too slow. */
export function voidBecause(lateShare: number, ownCpu: number): string | null {
  if (lateShare > MAX_LATE_SHARE)
    return `${(100 * lateShare).toFixed(0)} % of starts were more than ${LATE_MS} ms late: this machine has no CPU left for the generator`;
  if (ownCpu > MAX_OWN_CPU) return `the generator took ${(100 * ownCpu).toFixed(0)} % of its core`;
  return null;
}

function ownFailure(failures: ReadonlyMap<string, number>): string | null {
  const own = OWN_FAILURES.find((code) => failures.has(code));
  return own === undefined ? null : `${failures.get(own)} requests had no socket (${own}): raise \`ulimit -n\``;
}

const count = (counts: Map<string, number>, key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1);
