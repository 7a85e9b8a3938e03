import { pointsBy, single, type Metric } from './metric.js';

/** Deferred and offloaded work, and compression. */
export const metricsOfWork: readonly Metric[] = [
  {
    name: 'perf.deferred',
    unit: '{task}',
    kind: 'counter',
    help: 'Deferred tasks that have ended, by outcome.',
    attributes: ['outcome'],
    prometheus: { name: 'perf_deferred_total' },
    read: ({ snapshot: { defer: of } }) =>
      pointsBy('outcome', of && { completed: of.completed, failed: of.failed, dropped: of.dropped }),
  },
  {
    name: 'perf.deferred.pending',
    unit: '{task}',
    kind: 'upDownCounter',
    help: 'Deferred tasks that wait to run.',
    prometheus: { name: 'perf_deferred_pending' },
    read: ({ snapshot }) => single(snapshot.defer?.pending),
  },
  {
    name: 'perf.offload',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls of offloaded methods that have ended, by outcome.',
    attributes: ['outcome'],
    prometheus: { name: 'perf_offload_total' },
    read: ({ snapshot: { offload: of } }) =>
      pointsBy('outcome', of && { done: of.done, failed: of.failed, timed_out: of.timedOut, refused: of.refused }),
  },
  {
    name: 'perf.offload.pending',
    unit: '{call}',
    kind: 'upDownCounter',
    help: 'Calls of offloaded methods that wait for a worker thread.',
    prometheus: { name: 'perf_offload_pending' },
    read: ({ snapshot }) => single(snapshot.offload?.pending),
  },
  {
    name: 'perf.compression',
    unit: 'By',
    kind: 'counter',
    help: 'Bytes of responses before (in) and after (out) compression.',
    attributes: ['direction'],
    prometheus: { name: 'perf_compression_bytes_total' },
    read: ({ snapshot: { compression: of } }) => pointsBy('direction', of && { in: of.bytesIn, out: of.bytesOut }),
  },
];
