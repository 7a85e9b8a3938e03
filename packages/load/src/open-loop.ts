import type { Answer } from './client.js';
import { Outcomes, type Outcome } from './outcomes.js';
import { pace } from './pacer.js';
import { showProgress } from './progress.js';
import type { TrafficRequest } from './traffic.js';

/** A start that is later than this says nothing of the server. */
const LATE_MS = 5;
const MAX_LATE_SHARE = 0.05;
const MAX_OWN_CPU = 0.9;
/** Faults of this machine, rather than of the server. */
const OWN_FAILURES = ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS'];
/** Nothing that serves anybody lets so many wait. */
const MAX_IN_FLIGHT = 10_000;

/** The result of a run of intended starts. */
export interface LoadResult {
  readonly outcomes: Outcomes;
  /** Share of starts that were late, 0 to 1. */
  readonly lateShare: number;
  /** CPU that this process took while it started requests, cores. */
  readonly ownCpu: number;
  /** Requests that were not sent because too many were waiting. */
  readonly unsent: number;
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
  const outcomes = new Outcomes();
  let [sent, late, inFlight] = [0, 0, 0];
  let cpuBefore = process.cpuUsage();
  let idle = (): void => {};

  const ask = async (index: number, startMs: number, nowMs: () => number): Promise<void> => {
    const request = requestAt(index);
    const answer = await send(request, index);
    inFlight -= 1;
    const { status } = answer;
    // 429, "Too Many Requests": it has not taken the load.
    const failed = answer.failure !== null || ((status >= 500 || status === 429) && status !== request.status);
    const outcome = { ...answer, index, request, latencyMs: nowMs() - startMs, failed };
    outcomes.add(outcome);
    ended?.(outcome);
    if (inFlight === 0) idle();
  };

  const done = showProgress(() => `${sent} of ${offsetsMs.length} sent, ${inFlight} waiting for their answer`);
  const { nowMs } = await pace(offsetsMs, (index, pace) => {
    if (inFlight >= MAX_IN_FLIGHT) return pace.cancel();
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
    outcomes,
    lateShare,
    ownCpu,
    unsent: offsetsMs.length - sent,
    voidBecause: voidBecause(lateShare, ownCpu) ?? ownFailure(outcomes.failures),
  };
}

/** The generator, not the server, was too slow. */
function voidBecause(lateShare: number, ownCpu: number): string | null {
  if (lateShare > MAX_LATE_SHARE)
    return `${(100 * lateShare).toFixed(0)} % of starts were more than ${LATE_MS} ms late: this machine has no CPU left for the generator`;
  if (ownCpu > MAX_OWN_CPU) return `the generator took ${(100 * ownCpu).toFixed(0)} % of its core`;
  return null;
}

function ownFailure(failures: ReadonlyMap<string, number>): string | null {
  const own = OWN_FAILURES.find((code) => failures.has(code));
  return own === undefined ? null : `${failures.get(own)} requests had no socket (${own}): raise \`ulimit -n\``;
}
