import { entryOf } from '../../core/entry-of.js';
import type { TimeRange } from '../../ports/history.js';
import type { HistorySource } from '../reader.js';
import { findRule, HOUR_MS, MINUTE_MS, WEEK_MS, WINDOW_MS, type TierRule } from '../rows/tiers.js';

/** A bucket, and the releases that served in it. */
export interface ServedBucket {
  readonly at: number;
  readonly stepMs: number;
  readonly releases: ReadonlySet<string>;
}

/** Reads five weeks of buckets in their order: five minutes of the last two days, hours before. */
export async function readServed(source: HistorySource, nowMs: number): Promise<ServedBucket[]> {
  const read = async ({ tier, stepMs }: TierRule, range: TimeRange): Promise<ServedBucket[]> => {
    const found = new Map<number, Set<string>>();
    await source.read(tier, range, ({ at, release }) => {
      if (release !== '') entryOf(found, at, () => new Set()).add(release);
    });
    const sorted = [...found].toSorted(([a], [b]) => a - b);
    return sorted.map(([at, releases]) => ({ at, stepMs, releases }));
  };
  const recent = await read(findRule('5m'), { from: nowMs - findRule('5m').keepMs, to: nowMs + 1 });
  const until = recent[0]?.at ?? nowMs;
  const older = await read(findRule('1h'), { from: nowMs - 5 * WEEK_MS, to: until });
  return [...older.filter(({ at, stepMs }) => at + stepMs <= until), ...recent];
}

/** A change so soon after a release is the release's. */
const AFTER_RELEASE_MS = 30 * MINUTE_MS;
/** A restart beside another release takes no longer. */
const RESTART_MS = 10 * MINUTE_MS;

/** When each release served last without a bucket of others in between. */
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

  /** The release that came shortly before a change and serves in it, where another was there before it. */
  cameBefore(since: number): { name: string; at: number } | null {
    if (this.runs.size < 2) return null;
    const found = [...this.runs].filter(
      ([, { from, to }]) => since - from <= AFTER_RELEASE_MS && from - since <= WINDOW_MS && since < to,
    );
    const [newest] = found.toSorted(([, a], [, b]) => b.from - a.from);
    return newest === undefined ? null : { name: newest[0], at: newest[1].from };
  }
}

/** The release before one, when that one came, and the time in which both served; `previous` is null where none is known. */
export function findPrevious(buckets: readonly ServedBucket[], release: string, nowMs: number) {
  const runs = new ReleaseRuns();
  for (const bucket of buckets) runs.take(bucket);
  const since = runs.find(release)?.from ?? nowMs;
  const others = buckets.filter(({ at }) => at <= since).flatMap(({ releases }) => [...releases]);
  const previous = others.findLast((other) => other !== release);
  if (previous === undefined) return { since, previous: null, together: null };
  const both = buckets.filter(({ at, releases }) => at >= since && releases.has(previous));
  // The first bucket is the deploy itself: no time together.
  const togetherMs = both.slice(1).reduce((sum, { stepMs }) => sum + stepMs, 0);
  const end = both.at(-1);
  const together = togetherMs >= HOUR_MS - WINDOW_MS ? { from: both[0]!.at, to: end!.at + end!.stepMs } : null;
  return { since, previous: { name: previous, to: runs.find(previous)!.to }, together };
}
