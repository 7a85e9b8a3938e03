import { isSafe } from '../allowed.js';
import { runOpenLoop, type Send } from '../open-loop.js';
import type { Outcome } from '../outcomes.js';
import { evenly } from '../pacer.js';
import { nameRoute, type TrafficRequest } from '../traffic.js';

/** Few enough to be a rest. */
const PROBES_PER_SECOND = 10;
/** So many good answers in a row, one of each probe, and it is back. */
const IN_A_ROW = 3;
/** How often each is asked before any load. */
const LOOKS = 3;

/** Slower by no more than this, it is as it was. */
const AS_BEFORE = 2;

/** A request that is asked before the load and after it: routes differ in speed. */
export interface Probe {
  readonly request: TrafficRequest;
  /** How long an answer may take that is as good as before any load. */
  readonly goodMs: number;
}

/** One request of each of the routes that are asked for most; those that change nothing, where there are any. */
export function pickProbes(requests: readonly TrafficRequest[]): TrafficRequest[] {
  const safe = requests.filter(({ method }) => isSafe(method));
  const routes = new Map<string, { readonly request: TrafficRequest; count: number }>();
  for (const request of safe.length > 0 ? safe : requests) {
    const route = routes.get(nameRoute(request)) ?? { request, count: 0 };
    routes.set(nameRoute(request), route);
    route.count += 1;
  }
  return [...routes.values()]
    .toSorted((a, b) => b.count - a.count)
    .slice(0, IN_A_ROW)
    .map(({ request }) => request);
}

/** Asks each some times before any load. One that has failed is left out: there is nothing to come back to. */
export async function usualProbes(asked: readonly TrafficRequest[], slowestMs: number, send: Send): Promise<Probe[]> {
  const slowest = asked.map(() => 0);
  await runOpenLoop({
    offsetsMs: evenly(PROBES_PER_SECOND, (asked.length * LOOKS * 1_000) / PROBES_PER_SECOND),
    requestAt: (index) => asked[index % asked.length]!,
    send,
    ended({ index, failed, latencyMs }) {
      const of = index % asked.length;
      slowest[of] = Math.max(slowest[of]!, failed ? Infinity : latencyMs);
    },
  });
  return asked
    .map((request, i) => ({ request, goodMs: Math.max(AS_BEFORE * slowest[i]!, slowestMs) }))
    .filter(({ goodMs }) => goodMs !== Infinity);
}

/**
 * Rests, and looks whether the server comes back: good answers to the same requests as before. How long after the step, or null
 * when it has not come back; undefined when that cannot be told.
 */
export async function recover(
  restMs: number,
  ratePerSecond: number,
  probes: readonly Probe[],
  send: Send,
): Promise<number | null | undefined> {
  const offsetsMs = evenly(Math.min(PROBES_PER_SECOND, ratePerSecond), restMs);
  const probeAt = (index: number): Probe => probes[index % probes.length]!;
  const isGood = ({ index, failed, latencyMs }: Outcome): boolean => !failed && latencyMs <= probeAt(index).goodMs;
  const good = Array.from(offsetsMs, () => false);
  const { voidBecause } = await runOpenLoop({
    offsetsMs,
    requestAt: (index) => probeAt(index).request,
    send,
    ended: (outcome) => void (good[outcome.index] = isGood(outcome)),
  });
  const needed = Math.min(IN_A_ROW, good.length);
  const first = good.findIndex((_, i) => i + needed <= good.length && good.slice(i, i + needed).every(Boolean));
  if (first !== -1) return offsetsMs[first]!;
  // Probes that started late look like slow answers.
  return voidBecause === null ? null : undefined;
}
