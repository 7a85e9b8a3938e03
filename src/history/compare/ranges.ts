import type { CompareWhat, TimeRange } from '../../ports/history.js';
import type { HistorySource } from '../reader.js';
import { startBucket, DAY_MS, HOUR_MS, findRule, WEEK_MS } from '../rows/tiers.js';
import { tierFor } from '../series.js';
import { findPrevious, readServed } from './releases.js';

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

export async function findRanges(
  what: CompareWhat,
  source: HistorySource,
  ownRelease: string,
  nowMs: number,
): Promise<ComparedRanges> {
  if (typeof what === 'object') return plain(what.before, what.after);
  if (what === 'release') return releaseRanges(source, ownRelease, nowMs);
  const agoMs = what === 'day' ? DAY_MS : WEEK_MS;
  const { stepMs } = findRule(tierFor(nowMs - DAY_MS - agoMs, nowMs));
  // Rounded here and then shifted: else only one of both has the running bucket.
  const to = startBucket(nowMs, stepMs) + stepMs;
  const after = { from: to - DAY_MS, to };
  return plain({ from: after.from - agoMs, to: after.to - agoMs }, after);
}

/** The range before is empty: there is nothing to compare with. */
const withNothing = (after: TimeRange, caveat: string): ComparedRanges => ({
  ...plain({ from: after.from, to: after.from }, after),
  caveats: [caveat],
});

/** This release since it came, against the one before it: in the hours of both, else a week before, else as long before it. */
async function releaseRanges(source: HistorySource, release: string, nowMs: number): Promise<ComparedRanges> {
  if (release === '') return withNothing({ from: nowMs - 1, to: nowMs }, 'No release is known: set `release`.');
  const buckets = await readServed(source, nowMs);
  const { since, previous, together } = findPrevious(buckets, release, nowMs);
  const after = { from: since, to: Math.max(nowMs, since + 1) };
  if (previous === null) return withNothing(after, `No release before ${release} is known.`);
  const compared = { releases: { before: previous.name, after: release }, atOnce: together !== null, caveats: [] };
  if (together !== null) return { ...compared, before: together, after: together };
  const wasThere = buckets.some(({ at, releases }) => at <= since - WEEK_MS && releases.has(previous.name));
  // The running hour counts on both sides.
  const hourEndMs = startBucket(nowMs, HOUR_MS) + HOUR_MS;
  if (wasThere)
    return { ...compared, after, before: { from: since - WEEK_MS, to: Math.min(since, hourEndMs - WEEK_MS) } };
  const lengthMs = Math.max(HOUR_MS, Math.min(after.to - since, WEEK_MS));
  const caveats = [`Release ${previous.name} has not served the same hours a week ago: the hours before are taken.`];
  return { ...compared, after, before: { from: previous.to - lengthMs, to: previous.to }, caveats };
}
