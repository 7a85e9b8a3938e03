import type { UpstreamGuardStats } from '../../core/snapshot.js';
import type { Measured, Metric, Point } from './metric.js';

/** `guard({ upstreams })` names them: they are few. */
const byUpstream = ({ snapshot }: Measured, valueOf: (stats: UpstreamGuardStats) => number): Point[] =>
  Object.entries(snapshot.guard ?? {}).map(([upstream, stats]) => ({
    value: valueOf(stats),
    attributes: { upstream },
  }));

const OUTCOMES = {
  succeeded: 'succeeded',
  failed: 'failed',
  own_deadline: 'ownDeadlines',
  open: 'refusedOpen',
  busy: 'refusedBusy',
} as const;

/** Guarded calls. */
export const metricsOfGuard: readonly Metric[] = [
  {
    name: 'perf.guard.calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Guarded calls that have ended, by outcome; open and busy were refused.',
    attributes: ['upstream', 'outcome'],
    prometheus: { name: 'perf_guard_calls_total' },
    read: ({ snapshot }) =>
      Object.entries(snapshot.guard ?? {}).flatMap(([upstream, stats]) =>
        Object.entries(OUTCOMES).map(([outcome, of]) => ({ value: stats[of], attributes: { upstream, outcome } })),
      ),
  },
  {
    name: 'perf.guard.retries',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls that were sent once more.',
    attributes: ['upstream'],
    prometheus: { name: 'perf_guard_retries_total' },
    read: (measured) => byUpstream(measured, ({ retries }) => retries),
  },
  {
    name: 'perf.guard.open',
    unit: '1',
    kind: 'gauge',
    help: '1 while the breaker of an upstream is open, 0.5 while calls try whether it is back, else 0.',
    attributes: ['upstream'],
    prometheus: { name: 'perf_guard_open_ratio' },
    read: (measured) => byUpstream(measured, ({ state }) => ({ closed: 0, 'half-open': 0.5, open: 1 })[state]),
  },
];
