import { compressionFeature } from './compression/compression.feature.js';
import type { CompressionOptions } from './compression/compression.options.js';
import {
  boolean,
  describe,
  number,
  object,
  optional,
  string,
  value,
  type Option,
  type Resolved,
} from './core/option.js';
import { PerfError } from './core/perf.error.js';
import { timeout } from './core/shared-options.js';
import { inOffloadThread } from './core/offload-thread.js';
import type { PerfRequest } from './core/perf-request.js';
import type { Unit } from './core/record.js';
import { readUserId, type ReadUnit } from './request/request-unit.js';
import { dashboardFeature } from './dashboard/dashboard.feature.js';
import type { DashboardOptions } from './dashboard/dashboard.options.js';
import { deferFeature } from './defer/defer.feature.js';
import type { DeferOptions } from './defer/defer.options.js';
import { eventLoopFeature } from './event-loop/event-loop.feature.js';
import type { EventLoopOptions, EventLoopSettings } from './event-loop/event-loop.options.js';
import { experimentsFeature } from './experiments/experiments.feature.js';
import type { ExperimentsOptions } from './experiments/experiments.options.js';
import { historyFeature } from './history/history.feature.js';
import type { HistoryOptions } from './history/history.options.js';
import { extensionsOption, type PerfExtension } from './request/extension.js';
import type { FeatureDefinition } from './request/feature.js';
import { latencyFeature } from './latency/latency.feature.js';
import type { LatencyOptions } from './latency/latency.options.js';
import { sinksOption, type SinkOption } from './perf.sinks.js';
import { snapshotEndpointOption, type SnapshotEndpointOptions } from './perf.snapshot-endpoint.js';
import { resourcesFeature } from './resources/resources.feature.js';
import type { ResourcesOptions } from './resources/resources.options.js';
import { loggerSink } from './sinks/logger.sink.js';
import { upstreamFeature } from './upstream/upstream.feature.js';
import type { UpstreamOptions } from './upstream/upstream.options.js';
import { usersFeature } from './users/users.feature.js';
import type { UsersOptions } from './users/users.options.js';
import { workFeature } from './work/work.feature.js';

/** Everything `PerfModule.forRoot()` takes. Each feature is on by default; `false` installs nothing for it. */
export interface PerfModuleOptions {
  /**
   * The kill switch; the environment variable `NESTJS_PERF=off` is another. Off, nothing is measured, compressed or shared, no
   * sink is started, and there is no thread and no timer. Deferred work still runs. `NESTJS_PERF_OFF=compression,upstream`
   * switches single features off, as `false` does.
   * @default true
   */
  enabled?: boolean;
  /**
   * Every request measured per route.
   * @default true
   */
  latency?: boolean | LatencyOptions;
  /**
   * CPU, throttling and memory against the container's real limits, one record an interval.
   * @default true
   */
  resources?: boolean | ResourcesOptions;
  /**
   * Every event-loop block traced to the request and the source line that caused it.
   * @default true
   */
  eventLoop?: boolean | EventLoopOptions;
  /**
   * Upstream calls that requests wait for: calls of `fetch`, `node:http`, Redis and SQL clients, by target and by request.
   * @default true
   */
  upstream?: boolean | UpstreamOptions;
  /**
   * The heaviest users of each route in the last hour.
   * @default true
   */
  users?: boolean | UsersOptions;
  /**
   * Every message, event, socket message and GraphQL operation measured as `PerfInterceptor` does it, with no decorator: a global
   * interceptor, which HTTP handlers pass through.
   * @default false
   */
  work?: boolean;
  /**
   * The past minutes, hours and days, and whether it got slower.
   * @default true
   */
  history?: boolean | HistoryOptions;
  /**
   * Responses compressed at safe levels, equal ones once.
   * @default true
   */
  compression?: boolean | CompressionOptions;
  /**
   * Gates, variants on the records, and the answer whether a change is faster.
   * @default false
   */
  experiments?: false | ExperimentsOptions;
  /**
   * Work that runs after the response.
   * @default true
   */
  defer?: boolean | DeferOptions;
  /**
   * A live page at `/perf`, for everybody with the token in the log, or those whom `authorize` admits. `true` takes every default.
   * @default false
   */
  dashboard?: boolean | DashboardOptions;
  /**
   * Receivers of records: sinks, and classes or injection tokens of providers that are sinks. They start before `onModuleInit`.
   * @default [loggerSink()]
   */
  sinks?: readonly SinkOption[];
  /**
   * The unit that a request is for; null when unknown. Ids that are numbers become text. It is part of records, and experiments
   * are randomised by it; on a route of `@SharedResponse()` somebody gets an answer of its own. Called with the framework's request
   * when its response has ended, at the first check of a gate in it, and behind the guards of such a route.
   * @default `request.user?.id`
   */
  unit?(this: void, request: PerfRequest): Unit | null;
  /**
   * The release, on every request's record.
   * @default the platform's variable (`GIT_COMMIT`, `SOURCE_VERSION`, …), else the version in the application's package.json
   */
  release?: string;
  /**
   * The memory of all caches of the library together (encoded bodies and shared answers, cached values, history), each of which may
   * use a third of it, and never more than its own `maxBytes`.
   * @default { share: 0.1 }
   */
  memory?: { share?: number };
  /**
   * Features that come from entries of their own.
   * @default []
   */
  extensions?: readonly PerfExtension[];
  /**
   * `GET /perf/snapshot` with everything `PerfService.snapshot()` knows. There is none by default.
   * @default none
   */
  snapshotEndpoint?: SnapshotEndpointOptions;
  /**
   * For flushing and closing all sinks on `app.close()`, after deferred work has drained; milliseconds.
   * @default 5000
   */
  flushTimeoutMs?: number;
}

const unitFunction = optional(value<ReadUnit>('a function of the request', (given) => typeof given === 'function'));
const unit: Option<ReadUnit> = {
  expected: unitFunction.expected,
  read: (given, path) => unitFunction.read(given, path) ?? readUserId,
};

const isRelease = (text: string): boolean => text !== '' && text.length <= 200;

/**
 * The features, in the order in which they are installed, each after those that it needs: the event loop before features whose
 * records wait for its blocks, deferred work behind them, since it begins when all is recorded.
 */
const list = [
  resourcesFeature,
  eventLoopFeature,
  upstreamFeature,
  latencyFeature,
  experimentsFeature,
  usersFeature,
  workFeature,
  historyFeature,
  compressionFeature,
  deferFeature,
  dashboardFeature,
] as const;

type FeatureOptions = { readonly [F in (typeof list)[number] as F['name']]: F['option'] };
export const FEATURES: readonly FeatureDefinition<keyof FeatureOptions, unknown>[] = list;

/** The option table: one row a feature, and those of the whole. */
const table = object({
  ...(Object.fromEntries(FEATURES.map(({ name, option }) => [name, option])) as FeatureOptions),
  enabled: boolean({ default: true }),
  sinks: sinksOption,
  unit,
  release: optional(string({ what: 'a text of 1 to 200 characters', test: isRelease })),
  extensions: extensionsOption,
  memory: object({ share: number({ default: 0.1, unit: 'a share of the memory limit', max: 1 }) }),
  snapshotEndpoint: snapshotEndpointOption,
  flushTimeoutMs: timeout({ default: 5_000 }),
});

/** Validated and frozen: the only options object the code reads. A switched-off feature is null. */
export type ResolvedOptions = Resolved<typeof table> & {
  /** The features that `NESTJS_PERF_OFF` names. */
  readonly namedOff: readonly (keyof FeatureOptions)[];
  /** Address of `eventLoop.port`, also where a switch has made `eventLoop` null: liveness probes get an answer in any case. */
  readonly livenessAt: EventLoopSettings['liveness'];
};

/** The options as a provider. A tracer's proxy of a provider cannot wrap functions of a frozen object, so they stand one level deeper. */
export interface ProvidedOptions {
  readonly resolved: ResolvedOptions;
}

/**
 * Checks every option and fills in the defaults.
 * @throws PERF_ERR_OPTION with the option's path, what was expected and what was given
 */
export function resolveOptions(options: unknown): ResolvedOptions {
  const read = table.read(options, '');
  const namedOff = readNamedOff();
  const off = namedOff.filter((name) => !KEPT_ON.has(name));
  const resolved = withoutFeatures({ ...read, namedOff, livenessAt: findLivenessAddress(read) }, off);
  if (isSwitchedOff() || !resolved.enabled || inOffloadThread()) return switchedOff(resolved);
  const sinksGiven = (options as PerfModuleOptions | undefined)?.sinks !== undefined;
  return sinksGiven ? resolved : Object.freeze({ ...resolved, sinks: Object.freeze([loggerSink()]) });
}

/** @throws PERF_ERR_OPTION for any other word: a kill switch that does nothing is noticed too late */
function isSwitchedOff(): boolean {
  const given = process.env['NESTJS_PERF'] ?? '';
  const word = given.trim().toLowerCase();
  if (['off', 'false', '0'].includes(word)) return true;
  if (['', 'on', 'true', '1'].includes(word)) return false;
  throw new PerfError(
    'PERF_ERR_OPTION',
    `The environment variable NESTJS_PERF must be \`off\` or \`on\`, got ${describe(given)}.`,
  );
}

const OFF_VARIABLE = 'NESTJS_PERF_OFF';

/**
 * The features that `NESTJS_PERF_OFF=compression,upstream` names, in any case, with or without spaces.
 * @throws PERF_ERR_OPTION for a name that no feature has
 */
function readNamedOff(): (keyof FeatureOptions)[] {
  const given = (process.env[OFF_VARIABLE] ?? '').split(',').map((name) => name.trim());
  const found = given.filter((name) => name !== '').map(findFeature);
  return [...new Set(found)];
}

function findFeature(given: string): keyof FeatureOptions {
  const found = FEATURES.find(({ name }) => name.toLowerCase() === given.toLowerCase());
  if (found !== undefined) return found.name;
  throw new PerfError(
    'PERF_ERR_OPTION',
    `The environment variable ${OFF_VARIABLE} names \`${given.slice(0, 60)}\`, which is no feature. It is a list of these, separated by ` +
      `commas: ${FEATURES.map(({ name }) => name).join(', ')}.`,
  );
}

/** The features that `enabled: false` and the environment leave on: the application's own work must not be lost. */
export const KEPT_ON: ReadonlySet<keyof FeatureOptions> = new Set(
  FEATURES.filter(({ isApplicationsOwn }) => isApplicationsOwn === true).map(({ name }) => name),
);

function findLivenessAddress({ eventLoop }: Resolved<typeof table>): ResolvedOptions['livenessAt'] {
  return inOffloadThread() ? null : (eventLoop?.liveness ?? null);
}

function switchedOff(resolved: ResolvedOptions): ResolvedOptions {
  const off = FEATURES.map(({ name }) => name).filter((name) => !KEPT_ON.has(name));
  return Object.freeze({ ...withoutFeatures(resolved, off), enabled: false, sinks: Object.freeze([]) });
}

const withoutFeatures = (resolved: ResolvedOptions, names: readonly (keyof FeatureOptions)[]): ResolvedOptions =>
  Object.freeze({ ...resolved, ...Object.fromEntries(names.map((name) => [name, null])) });
