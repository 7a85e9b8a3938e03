import type { TrafficRequest } from '../traffic.js';
import { evenly } from '../pacer.js';
import { runOpenLoop, type Send } from '../open-loop.js';

/** Few enough to be a rest. */
const PROBES_PER_SECOND = 10;
/** So many good answers in a row, and it is back. */
const IN_A_ROW = 3;

/** Slower by no more than this, it is as it was. */
const AS_BEFORE = 2;

/** How long an answer may take that is as good as before any load; null where one has failed: there is nothing to come back to. */
export async function usualMs(requestAt: (index: number) => TrafficRequest, send: Send): Promise<number | null> {
  const offsetsMs = evenly(PROBES_PER_SECOND, (IN_A_ROW * 1_000) / PROBES_PER_SECOND);
  const { outcomes } = await runOpenLoop({ offsetsMs, requestAt, send });
  return outcomes.failures.size > 0 ? null : AS_BEFORE * outcomes.latencies.quantile(0.5);
}

/** During the rest after a step. */
export interface Recovery {
  /** From the last start of the step to the first of the good answers; null: it has not come back. */
  readonly recoveredAfterMs: number | null;
}

/** Rests, and looks whether the server comes back: answers without an error within `slowestMs`. Null when that cannot be told. */
export async function recover(
  restMs: number,
  slowestMs: number,
  ratePerSecond: number,
  requestAt: (index: number) => TrafficRequest,
  send: Send,
): Promise<Recovery | null> {
  const offsetsMs = evenly(Math.min(PROBES_PER_SECOND, ratePerSecond), restMs);
  const good = Array.from(offsetsMs, () => false);
  const { voidBecause } = await runOpenLoop({
    offsetsMs,
    requestAt,
    send,
    ended: ({ index, failed, latencyMs }) => void (good[index] = !failed && latencyMs <= slowestMs),
  });
  const needed = Math.min(IN_A_ROW, good.length);
  const first = good.findIndex((_, i) => i + needed <= good.length && good.slice(i, i + needed).every(Boolean));
  // Probes that started late look like slow answers.
  if (first === -1 && voidBecause !== null) return null;
  return { recoveredAfterMs: first === -1 ? null : offsetsMs[first]! };
}
