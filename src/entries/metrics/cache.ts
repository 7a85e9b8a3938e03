import type { CachedMethodStats } from '../../core/snapshot.js';
import { summed, type Measured, type Metric, type Point } from './metric.js';

const ATTRIBUTES = ['method', 'outcome'] as const;

/** Methods are as many as the code has decorators; two instances of a class are one series. */
function byOutcome(
  { snapshot, cap }: Measured,
  outcomesOf: (stats: CachedMethodStats) => Readonly<Record<string, number>>,
): Point[] {
  return summed(
    (snapshot.cache ?? []).flatMap((stats) =>
      Object.entries(outcomesOf(stats)).map(([outcome, value]) => ({
        value,
        attributes: { method: cap.admit(stats.method), outcome },
      })),
    ),
  );
}

/** What cached and preloaded methods were asked for. */
export const metricsOfCache: readonly Metric[] = [
  {
    name: 'perf.cache.calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls of cached methods, by what answered: a fresh value, a stale one, or a load.',
    attributes: ATTRIBUTES,
    prometheus: { name: 'perf_cache_calls_total' },
    read: (measured) => byOutcome(measured, ({ hits: hit, stale, misses: miss }) => ({ hit, stale, miss })),
  },
  {
    name: 'perf.cache.loads',
    unit: '{load}',
    kind: 'counter',
    help: 'Loads of cached methods that have ended.',
    attributes: ATTRIBUTES,
    prometheus: { name: 'perf_cache_loads_total' },
    read: (measured) => byOutcome(measured, ({ loads, failed }) => ({ completed: loads - failed, failed })),
  },
];
