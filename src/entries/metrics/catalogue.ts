import { counter, gauge, buildMetric, upDownCounter, type Row } from './metric.js';
import {
  by,
  byBlock,
  byCacheOutcome,
  byCallOutcome,
  byMethod,
  byPool,
  byTarget,
  byUpstream,
  byWork,
  capacityUsed,
  endedSeconds,
  loopDelay,
  ofResources,
  poolConnections,
  requestsOver,
  single,
} from './readings.js';

const ROWS: readonly Row[] = [
  [
    upDownCounter('http.server.active_requests', '{request}'),
    'HTTP requests in flight.',
    byMethod((of) => of.inFlight),
  ],
  [
    counter('perf.http.aborted', '{request}'),
    'HTTP requests whose client left before the end of the response; the duration histogram has the others.',
    byMethod((of) => of.aborted),
  ],
  [
    counter('perf.http.requests_over', '{request}'),
    'Completed HTTP requests that took longer than le_ms milliseconds (option latency.overMs).',
    requestsOver,
  ],

  [
    gauge('nodejs.eventloop.utilization', '1'),
    'Share of the last window in which the event loop was busy.',
    single(({ eventLoop }) => eventLoop?.utilization),
  ],
  ...(['p50', 'p99', 'max'] as const).map(loopDelay),
  [
    counter('perf.eventloop.blocks', '{block}'),
    'Event-loop blocks over the threshold, by cause and by the route proven to be the culprit.',
    byBlock(({ count }) => count),
  ],
  [
    counter('perf.eventloop.blocked', 's'),
    'Time that the event loop stood still in blocks over the threshold.',
    byBlock(({ seconds }) => seconds),
  ],

  // The container's limits and use. Absent where the kernel has no figure.
  [counter('container.cpu.time', 's'), 'CPU time the container has used.', ofResources(({ cpu }) => cpu.usageSeconds)],
  [
    gauge('container.cpu.limit.utilization', '1'),
    'Used share of the CPU limit, else of the CPUs the process may run on.',
    ofResources(({ cpu }) => cpu.window?.utilization),
  ],
  [
    counter('container.cpu.periods', '{period}'),
    'CPU quota periods in which the container ran.',
    ofResources(({ cpu }) => cpu.periods),
  ],
  [
    counter('container.cpu.throttled_periods', '{period}'),
    'CPU quota periods in which the container was throttled.',
    ofResources(({ cpu }) => cpu.throttledPeriods),
  ],
  [
    upDownCounter('container.memory.working_set', 'By'),
    'Memory in use that the kernel cannot take back at once.',
    ofResources(({ memory }) => memory.workingSetBytes),
  ],
  [
    upDownCounter('container.memory.limit', 'By'),
    'Memory limit of the container; absent when there is none.',
    ofResources(({ limits }) => limits.memoryBytes),
  ],

  [
    gauge('perf.capacity.used', '1'),
    'The busiest of event loop, CPU against its limit and memory against its limit: what an autoscaler follows.',
    single(capacityUsed),
  ],

  // The process itself; in Prometheus by the names that prom-client gives it.
  [
    counter('process.cpu.time', 's', { name: 'process_cpu_seconds_total', standard: true }),
    'CPU time the process has used.',
    ofResources(({ process }) => process.cpuSeconds),
  ],
  [
    upDownCounter('process.memory.usage', 'By', { name: 'process_resident_memory_bytes', standard: true }),
    'Resident memory of the process.',
    ofResources(({ process }) => process.rssBytes),
  ],
  [
    upDownCounter('v8js.memory.heap.used', 'By', { name: 'nodejs_heap_size_used_bytes', standard: true }),
    'JavaScript heap in use.',
    ofResources(({ process }) => process.heapUsedBytes),
  ],
  [
    upDownCounter('v8js.memory.heap.limit', 'By', { name: 'nodejs_heap_size_limit_bytes', standard: true }),
    'Size of the JavaScript heap at which the process ends.',
    ofResources(({ process }) => process.heapLimitBytes),
  ],

  [
    counter('perf.deferred', '{task}'),
    'Deferred tasks that have ended, by outcome.',
    by('outcome', ({ defer: of }) => of && { completed: of.completed, failed: of.failed, dropped: of.dropped }),
  ],
  [
    upDownCounter('perf.deferred.pending', '{task}'),
    'Deferred tasks that wait to run.',
    single((of) => of.defer?.pending),
  ],
  [
    counter('perf.offload', '{call}'),
    'Calls of offloaded methods that have ended, by outcome.',
    by(
      'outcome',
      ({ offload: of }) => of && { done: of.done, failed: of.failed, timed_out: of.timedOut, refused: of.refused },
    ),
  ],
  [
    upDownCounter('perf.offload.pending', '{call}'),
    'Calls of offloaded methods that wait for a worker thread.',
    single(({ offload }) => offload?.pending),
  ],
  [
    counter('perf.compression', 'By'),
    'Bytes of responses before (in) and after (out) compression.',
    by('direction', ({ compression: of }) => of && { in: of.bytesIn, out: of.bytesOut }),
  ],

  [
    gauge('perf.work.last_start_timestamp', 's'),
    'When the last call of a measured method began, seconds since the epoch.',
    byWork(({ lastAt }) => lastAt / 1_000),
  ],
  [
    counter('perf.work.overlapped', '{call}'),
    'Calls of a measured method that began while another one was still running.',
    byWork(({ overlapped }) => overlapped),
  ],

  // The servers that the application calls. Never by user, path or statement.
  [
    counter('perf.upstream.calls', '{call}'),
    'Calls to other servers, those under way included.',
    byTarget((of) => of.calls),
  ],
  [
    counter('perf.upstream.errors', '{call}'),
    'Calls that failed, timed out or were given up, and answers with a status of 500 or more.',
    byTarget((of) => of.errors),
  ],
  [
    counter('perf.upstream.time', 's'),
    'Time that calls which have ended took; calls at the same time count each.',
    byTarget(endedSeconds),
  ],
  [upDownCounter('perf.upstream.active_calls', '{call}'), 'Calls under way.', byTarget((of) => of.inFlight)],
  [
    upDownCounter('db.client.connection.count', '{connection}'),
    'Connections of watched pools, by state.',
    poolConnections,
  ],
  [upDownCounter('db.client.connection.max', '{connection}'), 'Connections allowed.', byPool((of) => of.max)],
  [
    upDownCounter('db.client.connection.pending_requests', '{request}'),
    'Callers that wait for a connection.',
    byPool((of) => of.waiting),
  ],
  [
    counter('perf.upstream.pool_wait', 's'),
    'Time that callers have waited for a connection.',
    byPool(({ acquired, waitMs }) => Math.round(waitMs.mean * acquired * 1_000) / 1e6),
  ],

  [
    counter('perf.resilience.calls', '{call}'),
    'Calls through `resilience()` that have ended, by outcome; open and busy were refused.',
    byCallOutcome(({ succeeded, failed, ownDeadlines: own_deadline, refusedOpen: open, refusedBusy: busy }) => ({
      succeeded,
      failed,
      own_deadline,
      open,
      busy,
    })),
  ],
  [counter('perf.resilience.retries', '{call}'), 'Calls that were sent once more.', byUpstream((of) => of.retries)],
  [
    gauge('perf.resilience.open', '1'),
    '1 while the breaker of an upstream is open, 0.5 while calls try whether it is back, else 0.',
    byUpstream(({ state }) => ({ closed: 0, 'half-open': 0.5, open: 1 })[state]),
  ],

  [
    counter('perf.cache.calls', '{call}'),
    'Calls of cached methods, by what answered: a fresh value, a stale one, or a load.',
    byCacheOutcome(({ hits: hit, stale, misses: miss }) => ({ hit, stale, miss })),
  ],
  [
    counter('perf.cache.loads', '{load}'),
    'Loads of cached methods that have ended.',
    byCacheOutcome(({ loads, failed }) => ({ completed: loads - failed, failed })),
  ],
];

/** Every metric but the histograms of durations. The order is that of the exposition. */
export const METRICS = ROWS.map(buildMetric);
