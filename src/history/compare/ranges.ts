import type { CompareWhat, TimeRange } from '../../core/history.js';
import type { HistorySource } from '../reader.js';
import { bucketOf, DAY_MS, HOUR_MS, MINUTE_MS, ruleOf, WEEK_MS } from '../rows/tiers.js';
import { tierFor } from '../series.js';
import { servedBy } from './served.js';

/** Two ranges; with releases, only what they have served. */
export interface ComparedRanges {
  readonly before: TimeRange;
  readonly after: TimeRange;
  readonly releases: { readonly before: string; readonly after: string } | null;
  /** Both releases served at the same time. */
  readonly atOnce: boolean;
  readonly caveats: readonly string[];
}

const plain = (before: TimeRange, after: TimeRange): ComparedRanges => ({
  before: { from: before.from, to: before.to },
  after: { from: after.from, to: after.to },
  releases: null,
  atOnce: true,
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

/** A canary: both releases have served for so long. */
const TOGETHER_MS = HOUR_MS;

async function releaseRanges(source: HistorySource, release: string, nowMs: number): Promise<ComparedRanges> {
  if (release === '') return withNothing({ from: nowMs - 1, to: nowMs }, 'No release is known: set `release`.');
  const served = await servedBy(source, nowMs);
  const now = served.get(release)?.at(-1) ?? { from: nowMs, to: nowMs, fromStepMs: 0, toStepMs: 0 };
  served.delete(release);
  const [previous] = [...served]
    .map(([old, times]) => ({ old, times, was: times.at(-1)! }))
    .toSorted((a, b) => b.was.from - a.was.from || b.was.to - a.was.to);
  const after = { from: now.from, to: Math.max(nowMs, now.from + 1) };
  if (previous === undefined) return withNothing(after, `No release before ${release} is known.`);
  const { old, times, was } = previous;
  const releases = { before: old, after: release };
  // Each end is known to a bucket: what is left of it without them is sure.
  const [later, sooner] = [now.from < was.from ? was : now, now.to < was.to ? now : was];
  if (sooner.to - sooner.toStepMs - (later.from + later.fromStepMs) >= TOGETHER_MS - 2 * MINUTE_MS) {
    const range = { from: later.from, to: sooner.to };
    return { before: range, after: range, releases, atOnce: true, caveats: [] };
  }
  const lengthMs = Math.min(after.to - after.from, WEEK_MS);
  // Hours reach back so far; of the running one, both have the whole.
  const hourEndMs = bucketOf(nowMs, HOUR_MS) + HOUR_MS;
  const weekBefore = { from: now.from - WEEK_MS, to: Math.min(now.from, hourEndMs - WEEK_MS) };
  if (times.some(({ from, to }) => from <= weekBefore.from && to > weekBefore.from))
    return { before: weekBefore, after, releases, atOnce: false, caveats: [] };
  const before = { from: Math.max(was.from, was.to - Math.max(lengthMs, HOUR_MS)), to: was.to };
  const caveats = [`Release ${old} has not served the same hours a week ago: its last hours are taken.`];
  return { before, after, releases, atOnce: false, caveats };
}
