import { single, type Metric } from './metric.js';

/** Deferred and offloaded work, and compression. */
export const metricsOfWork: readonly Metric[] = [
  {
    name: 'perf.deferred',
    unit: '{task}',
    kind: 'counter',
    help: 'Deferred tasks that have ended, by outcome.',
    attributes: ['outcome'],
    prometheus: { name: 'perf_deferred_total' },
    read: ({ snapshot: { defer } }) =>
      defer === null
        ? []
        : [
            { value: defer.completed, attributes: { outcome: 'completed' } },
            { value: defer.failed, attributes: { outcome: 'failed' } },
            { value: defer.dropped, attributes: { outcome: 'dropped' } },
          ],
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
    read: ({ snapshot: { offload } }) =>
      offload === null
        ? []
        : [
            { value: offload.done, attributes: { outcome: 'done' } },
            { value: offload.failed, attributes: { outcome: 'failed' } },
            { value: offload.timedOut, attributes: { outcome: 'timed_out' } },
            { value: offload.refused, attributes: { outcome: 'refused' } },
          ],
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
    read: ({ snapshot: { compression } }) =>
      compression === null
        ? []
        : [
            { value: compression.bytesIn, attributes: { direction: 'in' } },
            { value: compression.bytesOut, attributes: { direction: 'out' } },
          ],
  },
];
