import type { ResourceSample } from '../../core/record.js';
import type {
  CachedMethodStats,
  PerfSnapshot,
  PoolSnapshot,
  RouteSnapshot,
  UpstreamSnapshot,
  WorkSnapshot,
} from '../../core/snapshot.js';
import type { BlockTotal } from './block-totals.js';
import { isHttp } from './durations.js';
import { counter, gauge, metricOf, upDownCounter } from './metric.js';
import type { Measured, Point, Reading, Row } from './metric.js';

type Counts = Readonly<Record<string, number>>;
type Line = readonly [value: number, ...attributes: string[]];

/** Points by their attributes; lines that agree in all of them are added up. */
const lines = (attributes: readonly string[], of: (now: Measured) => readonly Line[]): Reading => ({
  attributes,
  read(now) {
    const points = new Map<string, Point>();
    for (const [value, ...given] of of(now)) {
      const key = JSON.stringify(given);
      const known = points.get(key);
      if (known !== undefined) known.value += value;
      else points.set(key, { value, attributes: Object.fromEntries(attributes.map((name, i) => [name, given[i]!])) });
    }
    return [...points.values()];
  },
});

const single = (of: (snapshot: PerfSnapshot) => number | null | undefined): Reading =>
  lines([], ({ snapshot }) => [of(snapshot) ?? []].flat().map((value) => [value]));

const ofResources = (of: (sample: ResourceSample) => number | null | undefined): Reading =>
  single(({ resources }) => resources && of(resources));

const loopDelay = (stat: 'p50' | 'p99' | 'max'): Row => [
  gauge(`nodejs.eventloop.delay.${stat}`, 's', { name: 'nodejs_eventloop_delay_seconds', labels: { stat } }),
  'How late the event loop was in the last window.',
  single(({ eventLoop }) => eventLoop && eventLoop.delayMs[stat] / 1_000),
];

/** A line for each count: its name is the last attribute, after those that all of them have. */
const linesOf = (counts: Counts | null, ...shared: string[]): Line[] =>
  Object.entries(counts ?? {}).map(([name, value]): Line => [value, ...shared, name]);

const by = (attribute: string, of: (snapshot: PerfSnapshot) => Counts | null): Reading =>
  lines([attribute], ({ snapshot }) => linesOf(of(snapshot)));

/** Measured work stands among the routes of a snapshot, and is no request. */
const httpRoutes = ({ routes }: PerfSnapshot): RouteSnapshot[] => routes.filter(({ method }) => isHttp(method));

/** Requests without a route share one row, of whatever methods: a series must not change its name when another one comes. */
const methodOf = ({ method, route }: RouteSnapshot): string => (route === '' ? '_OTHER' : method);

/** A figure of all routes by method: methods are few, routes may be many. */
const byMethod = (of: (route: RouteSnapshot) => number): Reading =>
  lines(['http.request.method'], ({ snapshot }) => httpRoutes(snapshot).map((route) => [of(route), methodOf(route)]));

const requestsOver = lines(['http.request.method', 'http.route', 'le_ms'], ({ snapshot, cap }) =>
  httpRoutes(snapshot).flatMap((route) =>
    route.over.map(({ ms, count }): Line => [count, methodOf(route), cap.admit(route.route), String(ms)]),
  ),
);

const byBlock = (of: (total: BlockTotal) => number): Reading =>
  lines(['http.route', 'cause'], ({ blocks }) =>
    Array.from(blocks.all(), (total): Line => [of(total), total.route, total.cause]),
  );

/** `upstream.maxTargets` bounds them, and the cap that routes have: what it turns away shares one series. */
const byTarget = (of: (upstream: UpstreamSnapshot) => number): Reading =>
  lines(['target', 'kind'], ({ snapshot, cap }) =>
    snapshot.upstream.map((upstream) => [of(upstream), cap.admit(upstream.target), upstream.kind]),
  );

/** Methods are as many as the code has. */
const byWork = (of: (work: WorkSnapshot) => number): Reading =>
  lines(['kind', 'handler'], ({ snapshot, cap }) =>
    snapshot.work.flatMap((work): Line[] => (work.lastAt === 0 ? [] : [[of(work), work.type, cap.admit(work.name)]])),
  );

/** The busiest of what a pod can run out of, 0 to 1: the event loop, its CPU and its memory. Null where nothing is known. */
function capacityUsed({ eventLoop, resources }: PerfSnapshot): number | null {
  const { memoryBytes } = resources?.limits ?? { memoryBytes: null };
  const working = resources?.memory.workingSetBytes ?? null;
  const known = [
    eventLoop?.utilization ?? null,
    resources?.cpu.window?.utilization ?? null,
    memoryBytes === null || working === null ? null : working / memoryBytes,
  ].filter((ratio) => ratio !== null);
  return known.length === 0 ? null : Math.max(...known);
}

/** In whole microseconds: a sum that is made of its mean again must not seem to go back. */
const endedSeconds = ({ calls, inFlight, durationMs }: UpstreamSnapshot): number =>
  Math.round(durationMs.mean * (calls - inFlight) * 1_000) / 1e6;

/** Watched pools by target, under the names of OpenTelemetry's database conventions. */
const POOL = 'db.client.connection.pool.name';
const byPool = (of: (pool: PoolSnapshot) => number | null): Reading =>
  lines([POOL], ({ snapshot, cap }) =>
    snapshot.upstream.flatMap(({ target, pool }): Line[] => {
      const value = pool === null ? null : of(pool);
      return value === null ? [] : [[value, cap.admit(target)]];
    }),
  );

const poolConnections = lines([POOL, 'db.client.connection.state'], ({ snapshot, cap }) =>
  snapshot.upstream.flatMap(({ target, pool }): Line[] => {
    if (pool?.total == null || pool.idle === null) return [];
    return linesOf({ idle: pool.idle, used: pool.total - pool.idle }, cap.admit(target));
  }),
);

type UpstreamCalls = NonNullable<PerfSnapshot['resilience']>[string];

/** `resilience({ upstreams })` names them: they are few. */
const byUpstream = (of: (stats: UpstreamCalls) => number): Reading =>
  lines(['upstream'], ({ snapshot }) =>
    Object.entries(snapshot.resilience ?? {}).map(([upstream, stats]) => [of(stats), upstream]),
  );

const byCallOutcome = (of: (stats: UpstreamCalls) => Counts): Reading =>
  lines(['upstream', 'outcome'], ({ snapshot }) =>
    Object.entries(snapshot.resilience ?? {}).flatMap(([upstream, stats]) => linesOf(of(stats), upstream)),
  );

/** Methods are as many as the code has decorators; two instances of a class are one series. */
const byCacheOutcome = (of: (stats: CachedMethodStats) => Counts): Reading =>
  lines(['method', 'outcome'], ({ snapshot, cap }) =>
    (snapshot.cache ?? []).flatMap((stats) => linesOf(of(stats), cap.admit(stats.method))),
  );

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
export const METRICS = ROWS.map(metricOf);
