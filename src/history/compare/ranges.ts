import { getOrAdd } from '../../core/get-or-add.js';
import type { CompareWhat, TimeRange } from '../../ports/history.js';
import type { HistorySource } from '../history-store.js';
import { startBucket, DAY_MS, findRule, HOUR_MS, MINUTE_MS, type TierRule, WEEK_MS, WINDOW_MS } from '../rows/tiers.js';
import { findTier } from '../series.js';

/** Two ranges to compare; with `releases`, only their own requests in them. */
export interface ComparedRanges {
  readonly before: TimeRange;
  readonly after: TimeRange;
  /** `overlap`: both served side by side for about an hour. */
  readonly releases: { readonly before: string; readonly after: string; readonly overlap: boolean } | null;
  readonly caveats: readonly string[];
}

const plain = (before: TimeRange, after: TimeRange, ...caveats: string[]): ComparedRanges => ({
  before: { from: before.from, to: before.to },
  after: { from: after.from, to: after.to },
  releases: null,
  caveats,
});

export async function findRanges(
  what: CompareWhat,
  source: HistorySource,
  ownRelease: string,
  nowMs: number,
): Promise<ComparedRanges> {
  if (typeof what === 'object') return plain(what.before, what.after);
  if (what === 'release') return findReleaseRanges(source, ownRelease, nowMs);
  const agoMs = what === 'day' ? DAY_MS : WEEK_MS;
  const { stepMs } = findRule(findTier(nowMs - DAY_MS - agoMs, nowMs));
  // Rounded before the shift, so that both ranges have the running bucket.
  const to = startBucket(nowMs, stepMs) + stepMs;
  const after = { from: to - DAY_MS, to };
  return plain({ from: after.from - agoMs, to: after.to - agoMs }, after);
}

/** Compares a release with the previous one: while both serve, else in the same hours a week earlier, else for as long before it. */
async function findReleaseRanges(source: HistorySource, release: string, nowMs: number): Promise<ComparedRanges> {
  const unknown = (from: number, caveat: string): ComparedRanges =>
    plain({ from, to: from }, { from, to: Math.max(nowMs, from + 1) }, caveat);
  if (release === '') return unknown(nowMs - 1, 'No release is known: set `release`.');
  const buckets = await readServed(source, nowMs);
  const runs = new ReleaseRuns();
  for (const bucket of buckets) runs.take(bucket);
  const since = runs.find(release)?.from ?? nowMs;
  const served = buckets.filter(({ at }) => at <= since).flatMap(({ releases }) => [...releases]);
  const previous = served.findLast((other) => other !== release);
  if (previous === undefined) return unknown(since, `No release before ${release} is known.`);
  const pair = { before: previous, after: release };
  const together = findTogether(buckets.filter(({ at, releases }) => at >= since && releases.has(previous)));
  if (together !== null)
    return { releases: { ...pair, overlap: true }, before: together, after: together, caveats: [] };
  const releases = { ...pair, overlap: false };
  const after = { from: since, to: Math.max(nowMs, since + 1) };
  if (buckets.some(({ at, releases }) => at <= since - WEEK_MS && releases.has(previous))) {
    // The running hour counts on both sides.
    const to = Math.min(since, startBucket(nowMs, HOUR_MS) + HOUR_MS - WEEK_MS);
    return { releases, after, before: { from: since - WEEK_MS, to }, caveats: [] };
  }
  const lengthMs = Math.max(HOUR_MS, Math.min(after.to - since, WEEK_MS));
  const { to } = runs.find(previous)!;
  const caveats = [`Release ${previous} has not served the same hours a week ago: the hours before are taken.`];
  return { releases, after, before: { from: to - lengthMs, to }, caveats };
}

/** The range in which both releases served; null if that is less than about an hour without the first bucket, that of the deploy. */
function findTogether(both: readonly ServedBucket[]): TimeRange | null {
  const [first, ...others] = both;
  const last = others.at(-1);
  if (last === undefined || others.reduce((sum, { stepMs }) => sum + stepMs, 0) < HOUR_MS - WINDOW_MS) return null;
  return { from: first!.at, to: last.at + last.stepMs };
}

interface ServedBucket {
  readonly at: number;
  readonly stepMs: number;
  readonly releases: ReadonlySet<string>;
}

/** Reads five weeks of buckets in their order: five minutes of the last two days, hours before. */
async function readServed(source: HistorySource, nowMs: number): Promise<ServedBucket[]> {
  const read = async ({ tier, stepMs }: TierRule, range: TimeRange): Promise<ServedBucket[]> => {
    const found = new Map<number, Set<string>>();
    await source.read(tier, range, () => {
      found.clear();
      return ({ at, release }) => {
        if (release !== '') getOrAdd(found, at, () => new Set()).add(release);
      };
    });
    const sorted = [...found].toSorted(([a], [b]) => a - b);
    return sorted.map(([at, releases]) => ({ at, stepMs, releases }));
  };
  const recent = await read(findRule('5m'), { from: nowMs - findRule('5m').keepMs, to: nowMs + 1 });
  const until = recent[0]?.at ?? nowMs;
  const older = await read(findRule('1h'), { from: nowMs - 5 * WEEK_MS, to: until });
  return [...older.filter(({ at, stepMs }) => at + stepMs <= until), ...recent];
}

/** A change that begins so soon after a release is attributed to it. */
const AFTER_RELEASE_MS = 30 * MINUTE_MS;
/** A release that is missing for longer beside another one has left: a restart takes less. */
const RESTART_MS = 10 * MINUTE_MS;

/** When each release served last, without interruption by others. */
export class ReleaseRuns {
  private readonly runs = new Map<string, TimeRange>();
  private endedAt = -Infinity;

  /** Takes a bucket, each later than the one before. */
  take({ at, stepMs, releases }: ServedBucket): void {
    if (releases.size === 0) return;
    const to = at + stepMs;
    for (const release of releases) {
      const run = this.runs.get(release);
      const hasLeft = run !== undefined && run.to < this.endedAt && at - run.to > RESTART_MS;
      if (run === undefined || hasLeft) this.runs.set(release, { from: at, to });
      else run.to = to;
    }
    this.endedAt = to;
  }

  find(release: string): TimeRange | undefined {
    return this.runs.get(release);
  }

  /** The newest release that began shortly before a change and serves during it; null while only one release is known. */
  findBefore(since: number): { name: string; at: number } | null {
    if (this.runs.size < 2) return null;
    const found = [...this.runs].filter(
      ([, { from, to }]) => since - from <= AFTER_RELEASE_MS && from - since <= WINDOW_MS && since < to,
    );
    const [newest] = found.toSorted(([, a], [, b]) => b.from - a.from);
    return newest === undefined ? null : { name: newest[0], at: newest[1].from };
  }
}
