import type { CompareWhat, TimeRange } from '../../ports/history.js';
import type { HistorySource } from '../reader.js';
import { bucketOf, DAY_MS, HOUR_MS, ruleOf, WEEK_MS } from '../rows/tiers.js';
import { tierFor } from '../series.js';
import { hoursAtOnce, servedBy, type Served } from './served.js';

/** Two ranges; with releases, only what they have served. */
export interface ComparedRanges {
  readonly before: TimeRange;
  readonly after: TimeRange;
  readonly releases: { readonly before: string; readonly after: string } | null;
  /** Both releases served at the same time. */
  readonly atOnce: boolean;
  /** Time of the range before that its release has not served. */
  readonly awayMs: number;
  readonly caveats: readonly string[];
}

const plain = (before: TimeRange, after: TimeRange): ComparedRanges => ({
  before: { from: before.from, to: before.to },
  after: { from: after.from, to: after.to },
  releases: null,
  atOnce: true,
  awayMs: 0,
  caveats: [],
});

export async function rangesOf(
  what: CompareWhat,
  source: HistorySource,
  ownRelease: string,
  nowMs: number,
): Promise<ComparedRanges> {
  if (typeof what === 'object') return plain(what.before, what.after);
  if (what === 'release') return releaseRanges(source, ownRelease, nowMs);
  const agoMs = what === 'day' ? DAY_MS : WEEK_MS;
  const { stepMs } = ruleOf(tierFor(nowMs - DAY_MS - agoMs, nowMs));
  // Rounded here and then shifted: else only one of both has the running bucket.
  const to = bucketOf(nowMs, stepMs) + stepMs;
  const after = { from: to - DAY_MS, to };
  return plain({ from: after.from - agoMs, to: after.to - agoMs }, after);
}

/** The range before is empty: there is nothing to compare with. */
const withNothing = (after: TimeRange, caveat: string): ComparedRanges => ({
  ...plain({ from: after.from, to: after.from }, after),
  caveats: [caveat],
});

async function releaseRanges(source: HistorySource, release: string, nowMs: number): Promise<ComparedRanges> {
  if (release === '') return withNothing({ from: nowMs - 1, to: nowMs }, 'No release is known: set `release`.');
  const served = await servedBy(source, nowMs);
  const own = served.get(release) ?? [{ from: nowMs, to: nowMs, fromStepMs: 0, toStepMs: 0 }];
  const now = own.at(-1)!;
  served.delete(release);
  const others = [...served]
    .flatMap(([old, times]) => times.map((was) => ({ old, times, was })))
    .toSorted((a, b) => Math.min(b.was.to, now.from) - Math.min(a.was.to, now.from) || b.was.from - a.was.from);
  const earlier = others.find(({ was }) => was.from <= now.from);
  // A canary beside it, as none came earlier: also then the newer one stands against the older.
  const previous = earlier ?? others.find(({ was }) => hoursAtOnce(now, was) !== null);
  const after = { from: now.from, to: Math.max(nowMs, now.from + 1) };
  if (previous === undefined) return withNothing(after, `No release before ${release} is known.`);
  const { old, times } = previous;
  const releases = earlier === undefined ? { before: release, after: old } : { before: old, after: release };
  const compared = { after, releases, atOnce: false, awayMs: 0, caveats: [] };
  const range = own.flatMap((is) => times.flatMap((was) => hoursAtOnce(is, was) ?? [])).at(-1);
  if (range !== undefined) return { ...compared, before: range, after: range, atOnce: true };
  // Hours reach back so far; of the running one, both have the whole.
  const hourEndMs = bucketOf(nowMs, HOUR_MS) + HOUR_MS;
  const weekBefore = { from: now.from - WEEK_MS, to: Math.min(now.from, hourEndMs - WEEK_MS) };
  if (times.some(({ from, to }) => from <= weekBefore.from && to > weekBefore.from))
    return { ...compared, before: weekBefore };
  const caveats = [`Release ${old} has not served the same hours a week ago: its last hours are taken.`];
  return { ...compared, ...lastOf(times, Math.max(HOUR_MS, Math.min(after.to - after.from, WEEK_MS))), caveats };
}

/** So much of the last that a release has served. */
function lastOf(times: readonly Served[], lengthMs: number): Pick<ComparedRanges, 'before' | 'awayMs'> {
  const { to } = times.at(-1)!;
  let [from, leftMs] = [to, lengthMs];
  for (const time of times.toReversed()) {
    if (leftMs <= 0) break;
    from = Math.max(time.from, time.to - leftMs);
    leftMs -= time.to - from;
  }
  return { before: { from, to }, awayMs: to - from - (lengthMs - leftMs) };
}
