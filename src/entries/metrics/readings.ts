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
import { gauge } from './metric.js';
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

export const single = (of: (snapshot: PerfSnapshot) => number | null | undefined): Reading =>
  lines([], ({ snapshot }) => [of(snapshot) ?? []].flat().map((value) => [value]));

export const ofResources = (of: (sample: ResourceSample) => number | null | undefined): Reading =>
  single(({ resources }) => resources && of(resources));

export const loopDelay = (stat: 'p50' | 'p99' | 'max'): Row => [
  gauge(`nodejs.eventloop.delay.${stat}`, 's', { name: 'nodejs_eventloop_delay_seconds', labels: { stat } }),
  'How late the event loop was in the last window.',
  single(({ eventLoop }) => eventLoop && eventLoop.delayMs[stat] / 1_000),
];

/** A line for each count: its name is the last attribute, after those that all of them have. */
const listLines = (counts: Counts | null, ...shared: string[]): Line[] =>
  Object.entries(counts ?? {}).map(([name, value]): Line => [value, ...shared, name]);

export const by = (attribute: string, of: (snapshot: PerfSnapshot) => Counts | null): Reading =>
  lines([attribute], ({ snapshot }) => listLines(of(snapshot)));

/** Measured work has rows among the routes of a snapshot, and is no request. */
const httpRoutes = ({ routes }: PerfSnapshot): RouteSnapshot[] => routes.filter(({ method }) => isHttp(method));

/** Requests without a route share one row, of whatever methods: a series must not change its name when another one comes. */
const nameMethod = ({ method, route }: RouteSnapshot): string => (route === '' ? '_OTHER' : method);

/** A figure of all routes by method: methods are few, routes may be many. */
export const byMethod = (of: (route: RouteSnapshot) => number): Reading =>
  lines(['http.request.method'], ({ snapshot }) => httpRoutes(snapshot).map((route) => [of(route), nameMethod(route)]));

export const requestsOver = lines(['http.request.method', 'http.route', 'le_ms'], ({ snapshot, cap }) =>
  httpRoutes(snapshot).flatMap((route) =>
    route.over.map(({ ms, count }): Line => [count, nameMethod(route), cap.admit(route.route), String(ms)]),
  ),
);

export const byBlock = (of: (total: BlockTotal) => number): Reading =>
  lines(['http.route', 'cause'], ({ blocks }) =>
    Array.from(blocks.all(), (total): Line => [of(total), total.route, total.cause]),
  );

/** `upstream.maxTargets` bounds them, and the cap that routes have: what it turns away shares one series. */
export const byTarget = (of: (upstream: UpstreamSnapshot) => number): Reading =>
  lines(['target', 'kind'], ({ snapshot, cap }) =>
    snapshot.upstream.map((upstream) => [of(upstream), cap.admit(upstream.target), upstream.kind]),
  );

/** Methods are as many as the code has. */
export const byWork = (of: (work: WorkSnapshot) => number): Reading =>
  lines(['kind', 'handler'], ({ snapshot, cap }) =>
    snapshot.work.flatMap((work): Line[] => (work.lastAt === 0 ? [] : [[of(work), work.type, cap.admit(work.name)]])),
  );

/** The busiest of what a pod can run out of, 0 to 1: the event loop, its CPU and its memory. Null where nothing is known. */
export function capacityUsed({ eventLoop, resources }: PerfSnapshot): number | null {
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
export const endedSeconds = ({ calls, inFlight, durationMs }: UpstreamSnapshot): number =>
  Math.round(durationMs.mean * (calls - inFlight) * 1_000) / 1e6;

/** Watched pools by target, under the names of OpenTelemetry's database conventions. */
const POOL = 'db.client.connection.pool.name';
export const byPool = (of: (pool: PoolSnapshot) => number | null): Reading =>
  lines([POOL], ({ snapshot, cap }) =>
    snapshot.upstream.flatMap(({ target, pool }): Line[] => {
      const value = pool === null ? null : of(pool);
      return value === null ? [] : [[value, cap.admit(target)]];
    }),
  );

export const poolConnections = lines([POOL, 'db.client.connection.state'], ({ snapshot, cap }) =>
  snapshot.upstream.flatMap(({ target, pool }): Line[] => {
    if (pool?.total == null || pool.idle === null) return [];
    return listLines({ idle: pool.idle, used: pool.total - pool.idle }, cap.admit(target));
  }),
);

type UpstreamCalls = NonNullable<PerfSnapshot['resilience']>[string];

/** `resilience({ upstreams })` names them: they are few. */
export const byUpstream = (of: (stats: UpstreamCalls) => number): Reading =>
  lines(['upstream'], ({ snapshot }) =>
    Object.entries(snapshot.resilience ?? {}).map(([upstream, stats]) => [of(stats), upstream]),
  );

export const byCallOutcome = (of: (stats: UpstreamCalls) => Counts): Reading =>
  lines(['upstream', 'outcome'], ({ snapshot }) =>
    Object.entries(snapshot.resilience ?? {}).flatMap(([upstream, stats]) => listLines(of(stats), upstream)),
  );

/** Methods are as many as the code has decorators; two instances of a class are one series. */
export const byCacheOutcome = (of: (stats: CachedMethodStats) => Counts): Reading =>
  lines(['method', 'outcome'], ({ snapshot, cap }) =>
    (snapshot.cache ?? []).flatMap((stats) => listLines(of(stats), cap.admit(stats.method))),
  );
