import { coresUsed, type Seen } from './reasons.js';

/** The loop's share is of the last 5 to 10 s: before, it tells of the time before the step too. */
const WHOLE_WINDOW_MS = 10_000;

/**
 * How many requests a second the server could take, if each costs as much as in the first step: until its loop or its CPU limit is
 * full. An upstream's limit shows only when it is reached. Null where the server's figures do not tell.
 */
export function predictedRate(ratePerSecond: number, holdMs: number, seen: Seen): number | null {
  if (holdMs < WHOLE_WINDOW_MS) return null;
  const loop = seen.after?.eventLoop?.utilization ?? null;
  const limit = seen.after?.resources?.limits.cpuCores ?? null;
  const used = coresUsed(seen);
  const shares = [loop, limit === null || used === null ? null : used / limit].filter(
    (share) => share !== null && share > 0.01,
  );
  return shares.length === 0 ? null : ratePerSecond / Math.max(...(shares as number[]));
}
