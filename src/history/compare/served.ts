import { entryOf } from '../../core/entry-of.js';
import type { TimeRange } from '../../core/history.js';
import type { HistorySource } from '../reader.js';
import { MINUTE_MS, TIERS, WEEK_MS } from '../rows/tiers.js';

/** A release that is away for no longer has restarted. */
const RESTART_MS = 10 * MINUTE_MS;

/** A time that a release has served without another in its place, and how exactly both ends are known: the buckets that they stand in. */
export interface Served extends TimeRange {
  readonly fromStepMs: number;
  to: number;
  toStepMs: number;
}

/** When each release has served, oldest first: after a rollback, more than once. */
export async function servedBy(source: HistorySource, nowMs: number): Promise<Map<string, Served[]>> {
  const served = new Map<string, Served[]>();
  const away = new Set<string>();
  for (const { at, stepMs, releases } of await bucketsOf(source, nowMs)) {
    for (const release of served.keys()) if (!releases.has(release)) away.add(release);
    for (const release of releases) {
      const times = entryOf(served, release, (): Served[] => []);
      const last = times.at(-1);
      const isNew = last === undefined || (away.has(release) && at - last.to > RESTART_MS);
      if (isNew) times.push({ from: at, fromStepMs: stepMs, to: at + stepMs, toStepMs: stepMs });
      else Object.assign(last, { to: at + stepMs, toStepMs: stepMs });
      away.delete(release);
    }
  }
  return served;
}

/** Buckets with the releases in them, oldest first. The finer tiers know better, and reach less far back. */
async function bucketsOf(source: HistorySource, nowMs: number) {
  let buckets: { at: number; stepMs: number; releases: Set<string> }[] = [];
  for (const { tier, stepMs, keepMs } of TIERS.toReversed()) {
    const finer = new Map<number, Set<string>>();
    const from = nowMs - (tier === '1h' ? 5 * WEEK_MS : keepMs);
    await source.read(tier, { from, to: nowMs + 1 }, ({ at, release }) => {
      if (release !== '') entryOf(finer, at, () => new Set()).add(release);
    });
    const times = [...finer.keys()].toSorted((a, b) => a - b);
    buckets = buckets.filter(({ at }) => times[0] === undefined || at < times[0]);
    for (const at of times) buckets.push({ at, stepMs, releases: finer.get(at)! });
  }
  return buckets;
}
