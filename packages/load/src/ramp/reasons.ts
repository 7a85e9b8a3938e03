import { ms, percent, printable } from '../quantity.js';
import type { Snapshot } from './server-view.js';

/** Below these a figure explains nothing. */
const BUSY_LOOP = 0.8;
const THROTTLED = 0.05;
const FULL_CPU = 0.9;
const SLOWER_UPSTREAM = 1.5;
const SLOWER_UPSTREAM_MS = 5;

/** A step as the server has seen it, from before its first request to after its last. */
export interface Seen {
  readonly before: Snapshot | null;
  readonly after: Snapshot | null;
}

/** Why `step` did not hold, where the first step did: each reason a few words. Empty where the server's figures tell nothing. */
export function findReasons(first: Seen, step: Seen): string[] {
  const { after } = step;
  if (after === null) return [];
  const reasons: string[] = [];
  const loop = after.eventLoop?.utilization ?? null;
  const isBusy = loop !== null && loop >= BUSY_LOOP;
  if (isBusy) reasons.push(`loop ${loop.toFixed(2)} busy`);
  const cores = after.resources?.limits.cpuCores ?? null;
  const limit = cores === null ? '' : ` (limit ${Number(cores.toFixed(2))} ${cores === 1 ? 'core' : 'cores'})`;
  const throttled = throttledShare(step);
  const used = coresUsed(step);
  if (throttled !== null && throttled >= THROTTLED) reasons.push(`throttled ${percent(throttled)} of periods${limit}`);
  else if (used !== null && cores !== null && used / cores >= FULL_CPU)
    reasons.push(`CPU ${used.toFixed(2)} cores used${limit}`);
  const route = after.routes?.toSorted((a, b) => (b.time?.loopShare ?? 0) - (a.time?.loopShare ?? 0))[0];
  const own = route?.time?.ownCpuMs ?? null;
  if (isBusy && own !== null && route !== undefined)
    reasons.push(
      `${printable(`${route.method} ${route.route}`)} takes ${percent(route.time!.loopShare)} of the loop (${ms(own.mean)} own CPU each)`,
    );
  return [...reasons, ...slowerUpstreams(first, step)];
}

function* slowerUpstreams(first: Seen, step: Seen): Generator<string> {
  for (const { target } of step.after?.upstream ?? []) {
    const [usual, now] = [meanCallMs(first, target), meanCallMs(step, target)];
    if (usual === null || now === null || now < usual * SLOWER_UPSTREAM || now < usual + SLOWER_UPSTREAM_MS) continue;
    yield `${printable(target)} takes ${ms(now)} a call, ${ms(usual)} at first`;
  }
}

/** Calls between the two snapshots. */
function meanCallMs({ before, after }: Seen, target: string): number | null {
  const of = (snapshot: Snapshot | null) => snapshot?.upstream?.find((candidate) => candidate.target === target);
  const [was, is] = [of(before), of(after)];
  if (is === undefined) return null;
  const calls = is.calls - (was?.calls ?? 0);
  return calls <= 0 ? null : (is.calls * is.durationMs.mean - (was?.calls ?? 0) * (was?.durationMs.mean ?? 0)) / calls;
}

function throttledShare({ before, after }: Seen): number | null {
  const periods = delta(before?.resources?.cpu.periods, after?.resources?.cpu.periods);
  const throttled = delta(before?.resources?.cpu.throttledPeriods, after?.resources?.cpu.throttledPeriods);
  return periods === null || throttled === null || periods <= 0 ? null : throttled / periods;
}

/** CPU cores that the container has used. */
function coresUsed({ before, after }: Seen): number | null {
  const seconds = delta(before?.resources?.cpu.usageSeconds, after?.resources?.cpu.usageSeconds);
  const elapsedMs = delta(before?.resources?.at, after?.resources?.at);
  return seconds === null || elapsedMs === null || elapsedMs <= 0 ? null : (seconds * 1_000) / elapsedMs;
}

const delta = (from: number | null | undefined, to: number | null | undefined): number | null =>
  from === null || from === undefined || to === null || to === undefined ? null : to - from;
