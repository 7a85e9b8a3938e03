import { compressionOption, type CompressionOptions } from './compression/compression.options.js';
import { deferOption, type DeferOptions } from './defer/defer.options.js';
import { list, number, object, oneOf, value, type Resolved } from './core/option.js';
import type { PerfSink } from './core/sink.js';
import { eventLoopOption, type EventLoopOptions } from './event-loop/event-loop.options.js';
import { experimentsOption, type ExperimentsOptions } from './experiments/experiments.options.js';
import { latencyOption, type LatencyOptions } from './latency/latency.options.js';
import { snapshotEndpointOption, type SnapshotEndpointOptions } from './perf.snapshot-endpoint.js';
import { resourcesOption, type ResourcesOptions } from './resources/resources.options.js';
import { loggerSink } from './sinks/logger.sink.js';

/** Everything `PerfModule.forRoot()` takes. Each feature is on by default; `false` installs nothing for it. */
export interface PerfModuleOptions {
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
   * Where records go.
   * @default [loggerSink()]
   */
  sinks?: readonly PerfSink[];
  /**
   * The async-context store, which `defer()` and gates in services need. It costs 12 to 29 % of a hello-world's CPU, so
   * `'auto'` switches it on only when a provider or controller asks for a service that needs it, read once at boot.
   * @default 'auto'
   */
  context?: boolean | 'auto';
  /**
   * `GET /perf/snapshot` with everything `PerfService.snapshot()` knows. There is none unless it is asked for.
   * @default none
   */
  snapshotEndpoint?: SnapshotEndpointOptions;
  /**
   * For flushing and closing all sinks on `app.close()`, after deferred work has drained; milliseconds.
   * @default 5000
   */
  flushTimeoutMs?: number;
}

const sink = value<PerfSink>('a sink: an object with a `name` and a `publish()` method', (given) => {
  const candidate = given as Partial<PerfSink> | null | undefined;
  return typeof candidate?.name === 'string' && typeof candidate.publish === 'function';
});

/** The option table: one row a feature. */
const table = object({
  latency: latencyOption,
  defer: deferOption,
  compression: compressionOption,
  resources: resourcesOption,
  eventLoop: eventLoopOption,
  experiments: experimentsOption,
  sinks: list(sink, { default: [], what: 'a list of sinks' }),
  context: oneOf([true, false, 'auto'], { default: 'auto' }),
  snapshotEndpoint: snapshotEndpointOption,
  flushTimeoutMs: number({ default: 5_000, unit: 'a number of milliseconds' }),
});

/** Validated and frozen: the only options object the code reads. A switched-off feature is null. */
export type ResolvedOptions = Resolved<typeof table>;

/**
 * Checks every option and fills in the defaults.
 * @throws PERF_ERR_OPTION with the option's path, what was expected and what was given
 */
export function resolveOptions(options: unknown): ResolvedOptions {
  const resolved = table.read(options, '');
  const sinksGiven = (options as PerfModuleOptions | undefined)?.sinks !== undefined;
  return sinksGiven ? resolved : Object.freeze({ ...resolved, sinks: Object.freeze([loggerSink()]) });
}
