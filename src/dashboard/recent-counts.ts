import { pushBounded } from '../core/push-bounded.js';
import type { PerfSnapshot, RouteSnapshot } from '../core/snapshot.js';
import type { HistoryReader, RouteCounts } from '../ports/history.js';
import { nameRoute } from './route-rows.js';
import { WINDOW } from './view.js';

const MINUTE_MS = 60_000;
const EARLIER_MS = 5 * MINUTE_MS;
/** Routes that failed or were slow most often since the process started. */
const MAX_ROUTES = 100;

/** Requests that ended just before the first sample. `whole` is null without a history. */
export type EarlierCounts = Omit<RouteCounts, 'whole'> & { spanMs: number; whole: RouteCounts['whole'] | null };

/** Counts of the last minutes; without a history of all the time since the process started. */
export async function readEarlierCounts(
  { at, routes }: PerfSnapshot,
  history: HistoryReader | null,
  upMs: number,
): Promise<EarlierCounts> {
  const troubles = ({ errors, over }: RouteSnapshot): number => errors + (over[0]?.count ?? 0);
  const suspects = routes
    .filter((route) => troubles(route) > 0)
    .toSorted((a, b) => troubles(b) - troubles(a))
    .slice(0, MAX_ROUTES)
    .map((route) => [nameRoute(route), route] as const);
  if (history === null) return { spanMs: upMs, whole: null, routes: new Map(suspects) };
  const names = suspects.map(([name]) => name);
  // The first minute that is counted as a whole.
  const from = Math.ceil((at - EARLIER_MS) / MINUTE_MS) * MINUTE_MS;
  return { spanMs: Math.min(at - from, upMs), ...(await history.countsSince(from, names)) };
}

interface Taken {
  readonly ms: number;
  /** Computed for a time without a viewer: what came in the gap is subtracted from the first sample. */
  readonly isComputed: boolean;
  readonly counts: Map<string, readonly number[]>;
}

/** Gains of cumulative counters in the last samples, by name. */
export class RecentCounts {
  private samples: Taken[] = [];

  get spanMs(): number {
    return (this.samples.at(-1)?.ms ?? 0) - (this.samples[0]?.ms ?? 0);
  }

  /** A new sample begins. `gapMs`: it is the first after a time without samples, of which so much is known. */
  next(nowMs: number, gapMs: number | null): void {
    if (gapMs !== null) this.samples = [{ ms: nowMs - gapMs, isComputed: true, counts: new Map() }];
    pushBounded(this.samples, { ms: nowMs, isComputed: false, counts: new Map() }, WINDOW + 1);
  }

  /** Once a sample and name. `before`: gained in the gap. */
  count(name: string, counts: readonly number[], before: readonly number[] = []): void {
    this.samples.at(-1)!.counts.set(name, counts);
    const { isComputed, counts: first } = this.samples[0]!;
    const computed = counts.map((count, i) => count - (before[i] ?? 0));
    if (isComputed && !first.has(name)) first.set(name, computed);
  }

  /** Gains of the counter at `index` in each sample, the newest last; undefined when it was nothing. */
  gains(name: string, index: number): number[] | undefined {
    if (this.gained(name, index) === 0) return undefined;
    const counts = this.samples.flatMap((one) => (one.isComputed ? [] : [one.counts.get(name)?.[index]]));
    const gains = counts.slice(1).map((count = 0, i) => Math.max(0, count - (counts[i] ?? count)));
    return gains.some((gain) => gain > 0) ? gains : undefined;
  }

  gained(name: string, index: number): number {
    const first = this.samples.find(({ counts }) => counts.has(name))?.counts.get(name)?.[index] ?? 0;
    return Math.max(0, (this.samples.at(-1)?.counts.get(name)?.[index] ?? 0) - first);
  }
}
