import type { UpstreamSnapshot } from '../../core/snapshot.js';
import { summed, type Measured, type Metric, type Point } from './metric.js';

const ATTRIBUTES = ['target', 'kind'] as const;

/** `upstream.maxTargets` bounds them, and the cap that routes have: what it turns away shares one series. */
const byTarget = ({ snapshot, cap }: Measured, valueOf: (upstream: UpstreamSnapshot) => number): Point[] =>
  summed(
    snapshot.upstream.map((upstream) => ({
      value: valueOf(upstream),
      attributes: { target: cap.admit(upstream.target), kind: upstream.kind },
    })),
  );

/** In whole microseconds: a sum that is made of its mean again must not seem to go back. */
const endedSeconds = ({ calls, inFlight, durationMs }: UpstreamSnapshot): number =>
  Math.round(durationMs.mean * (calls - inFlight) * 1_000) / 1e6;

/** The servers that the application calls. Never by user, path or statement. */
export const metricsOfUpstreams: readonly Metric[] = [
  {
    name: 'perf.upstream.calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls to other servers, those under way included.',
    attributes: ATTRIBUTES,
    prometheus: { name: 'perf_upstream_calls_total' },
    read: (measured) => byTarget(measured, ({ calls }) => calls),
  },
  {
    name: 'perf.upstream.errors',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls that failed, timed out or were given up, and answers with a status of 500 or more.',
    attributes: ATTRIBUTES,
    prometheus: { name: 'perf_upstream_errors_total' },
    read: (measured) => byTarget(measured, ({ errors }) => errors),
  },
  {
    name: 'perf.upstream.time',
    unit: 's',
    kind: 'counter',
    help: 'Time that calls which have ended took; calls at the same time count each.',
    attributes: ATTRIBUTES,
    prometheus: { name: 'perf_upstream_time_seconds_total' },
    read: (measured) => byTarget(measured, endedSeconds),
  },
  {
    name: 'perf.upstream.active_calls',
    unit: '{call}',
    kind: 'upDownCounter',
    help: 'Calls under way.',
    attributes: ATTRIBUTES,
    prometheus: { name: 'perf_upstream_active_calls' },
    read: (measured) => byTarget(measured, ({ inFlight }) => inFlight),
  },
];
