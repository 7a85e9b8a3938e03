import { entryOf } from '../../core/entry-of.js';
import type { TimeRange } from '../../ports/history.js';
import type { HistorySource } from '../reader.js';
import { HOUR_MS, MINUTE_MS, TIERS, WEEK_MS, WINDOW_MS } from '../rows/tiers.js';

/** A time that a release has served without another in its place, and how exactly both ends are known: the buckets that they stand in. */
export interface Served extends TimeRange {
  readonly fromStepMs: number;
  to: number;
  toStepMs: number;
}

/** A deploy, and a rollout of it, take no longer. */
const RESTART_MS = 10 * MINUTE_MS;
/** A change so soon after a release is the release's. */
const AFTER_RELEASE_MS = 30 * MINUTE_MS;

/** Whether there is an hour between two ends. Each is known to a bucket: what is left of it without them is sure. */
const isHour = ({ from, fromStepMs }: Served, { to, toStepMs }: Served): boolean =>
  to - toStepMs - (from + fromStepMs) >= HOUR_MS - 2 * MINUTE_MS;

/** The hours of both, where they have served at once for one: a canary, and no deploy. */
export function hoursAtOnce(a: Served, b: Served): TimeRange | null {
  const [later, sooner] = [a.from < b.from ? b : a, b.to < a.to ? b : a];
  return isHour(later, sooner) ? { from: later.from, to: sooner.to } : null;
}

/** When each release has served, oldest first: after a rollback, more than once. */
export class ServedTimes {
  readonly byRelease = new Map<string, Served[]>();

  /** The releases of a bucket, each bucket later than the one before. */
  take(at: number, stepMs: number, releases: ReadonlySet<string>): void {
    const end = { to: at + stepMs, toStepMs: stepMs };
    const coming = [...releases].filter((release) => this.comes(release, at));
    for (const release of releases) {
      const times = entryOf(this.byRelease, release, () => []);
      if (coming.includes(release)) times.push({ from: at, fromStepMs: stepMs, ...end });
      else Object.assign(times.at(-1)!, end);
    }
  }

  /** The release that came shortly before a change and serves in it, where another was there before it. */
  cameBefore(since: number): { name: string; at: number } | null {
    if (this.byRelease.size < 2) return null;
    const last = [...this.byRelease].map(([name, times]) => ({ name, at: times.at(-1)!.from, to: times.at(-1)!.to }));
    const [newest = null] = last
      .filter(({ at, to }) => since - at <= AFTER_RELEASE_MS && at - since <= WINDOW_MS && since < to)
      .toSorted((a, b) => b.at - a.at);
    return newest;
  }

  /** Whether it is new, or another has replaced it meanwhile, rather than served beside it while it restarted. */
  private comes(release: string, at: number): boolean {
    const last = this.byRelease.get(release)?.at(-1);
    if (last === undefined) return true;
    const awayMs = at - last.to;
    const others = [...this.byRelease.values()].map((times) => times.at(-1)!);
    return others.some((other) => {
      if (other.to <= last.to) return false;
      // A canary may be away for longer than a release whose canary it was.
      return awayMs > (other.from > last.from ? RESTART_MS : HOUR_MS) || !isHour(other, last);
    });
  }
}

/** From everything that is known. The finer tiers know better, and reach less far back. */
export async function servedBy(source: HistorySource, nowMs: number): Promise<Map<string, Served[]>> {
  let buckets: { at: number; stepMs: number; releases: Set<string> }[] = [];
  for (const { tier, stepMs, keepMs } of TIERS.toReversed()) {
    const finer = new Map<number, Set<string>>();
    const from = nowMs - (tier === '1h' ? 5 * WEEK_MS : keepMs);
    await source.read(tier, { from, to: nowMs + 1 }, ({ at, release }) => {
      if (release !== '') entryOf(finer, at, () => new Set()).add(release);
    });
    const times = [...finer.keys()].toSorted((a, b) => a - b);
    const [first = Infinity] = times;
    buckets = buckets.flatMap((one) =>
      one.at < first ? { ...one, stepMs: Math.min(one.stepMs, first - one.at) } : [],
    );
    for (const at of times) buckets.push({ at, stepMs, releases: finer.get(at)! });
  }
  const served = new ServedTimes();
  for (const { at, stepMs, releases } of buckets) served.take(at, stepMs, releases);
  return served.byRelease;
}
