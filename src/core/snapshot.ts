import type { ResourceSample, UpstreamKind, WorkType } from './record.js';

/** Counters of deferred work since the application started; `pending`, `running` and `buffered` are of now. */
export interface DeferStats {
  pending: number;
  running: number;
  accepted: number;
  completed: number;
  failed: number;
  retried: number;
  dropped: number;
  /** `addJob`s and durable work not yet stored. */
  buffered: number;
  /** Durable work that the store has taken over; counts as completed. */
  stored: number;
}

/** Counters of compression since the application started; `cacheBytes` is of now. */
export interface CompressionStats {
  /** All responses that compression has seen, but those of the module's own paths. */
  responses: number;
  /** Responses that were sent encoded. */
  compressed: number;
  /** Bodies that were found encoded, and shared answers. */
  cacheHits: number;
  /** Bytes of the encoded responses before and after. */
  bytesIn: number;
  bytesOut: number;
  cacheBytes: number;
}

/** The event loop over the last window of 5 to 10 s, never over the whole lifetime: sinks count blocks from their records. */
export interface EventLoopSnapshot {
  /** Share of the window in which the loop was not waiting for events, 0 to 1. */
  utilization: number;
  /** How late ticks of the loop came. */
  delayMs: { p50: number; p99: number; max: number };
  /** Blocks over the threshold that ended in the window, and their sum in milliseconds. */
  blocks: number;
  blockedMs: number;
}

/** A mean with its interval, from samples of the event loop in the last 5 to 10 minutes. */
export interface Estimate {
  mean: number;
  /** 95 %. */
  ci: readonly [number, number];
  /** At least 20. */
  samples: number;
}

/** The time of a route's completed requests by what it was spent on: means per request, milliseconds. */
export interface RouteTime {
  /** CPU time on the main thread; null before there are 20 samples, and with `eventLoop: { profile: false }`. */
  ownCpuMs: Estimate | null;
  upstreamMs: number;
  /** Waiting for a connection of a watched pool. */
  poolWaitMs: number;
  /** The loop was busy, and not with this request as far as is known; all of it may be its own while `ownCpuMs` is null. */
  loopWaitMs: number;
  /** Share of the time in which the loop ran code of this route, 0 to 1: of the last 5 to 10 minutes. */
  loopShare: number;
}

/** Calls of a route to one upstream. */
export interface RouteUpstream {
  target: string;
  callsPerRequest: number;
  /** Mean of the sum of its calls, milliseconds a request. */
  wallMs: number;
}

/** One upstream since the application started. */
export interface UpstreamSnapshot {
  /** `'http api.github.com'` */
  target: string;
  kind: UpstreamKind;
  calls: number;
  errors: number;
  inFlight: number;
  durationMs: Durations;
  /** Null while no pool of this upstream is watched. */
  pool: PoolSnapshot | null;
  /** Route of the placed calls: `'GET /users/:id'`. */
  routes: readonly { route: string; calls: number; wallMs: number }[];
}

/** The watched connection pools of one upstream: connections now, and waits since the application started. */
export interface PoolSnapshot {
  /** The most connections that it may open; null where the pool has no such count, like the next three. */
  max: number | null;
  total: number | null;
  idle: number | null;
  /** Callers that wait for a connection. */
  waiting: number | null;
  /** Waits that have ended; one that found an idle connection is a wait of about 0 ms. */
  acquired: number;
  waitMs: Durations;
}

/** How much of a route one user has requested in the last hour. The truth lies between each figure and its `…AtLeast`. */
export interface UserUse {
  /** The user's id, or a hash of it with `users.redact`. */
  unit: string;
  route: string;
  count: number;
  countAtLeast: number;
  totalMs: number;
  totalMsAtLeast: number;
  /** Time in which an upstream call of its followed requests was in flight, milliseconds. */
  upstreamMs: number;
}

/** Counts of the calls to one upstream of `resilience()` since the application started. */
export interface ResilientUpstreamStats {
  /** `half-open`: the next calls are let through to try it. */
  state: 'closed' | 'open' | 'half-open';
  inFlight: number;
  /** All calls: those of the next five counters, and `inFlight`. For Redis, commands; a pipeline is one. */
  calls: number;
  /** Calls that the application gave up itself are among them. */
  succeeded: number;
  /** Counted also where a fallback has answered. */
  failed: number;
  /** Ran out of time because our own loop was blocked, or because the request had none left: not the upstream's failure. */
  ownDeadlines: number;
  /** Calls not sent because the breaker was open. */
  refusedOpen: number;
  /** Calls not sent because `maxInFlight` were in flight. */
  refusedBusy: number;
  /** Part of `failed`: calls that ran out of time. */
  deadlines: number;
  /** Requests that reached the upstream: calls and their retries. */
  attempts: number;
  retries: number;
  /** Failures that were not tried again because the budget of retries was spent. */
  retriesDenied: number;
  /** Calls that a fallback has answered. */
  fallbacks: number;
  /** How often the breaker has opened. */
  opened: number;
  /** Durations of attempts that succeeded, milliseconds. */
  durationMs: { mean: number; p50: number; p99: number; max: number };
}

/** Lookups of one `@Cached()` or `@Preloaded()` method since the application started; `entries` is the present number. */
export interface CachedMethodStats {
  /** `'Catalogue.product'` */
  method: string;
  entries: number;
  /** Calls (with `batch`: keys) that were answered by a fresh value, by one older than `ttlMs`, and by none that was there. */
  hits: number;
  stale: number;
  misses: number;
  /** Loads that have ended, and those of them that failed or were late. */
  loads: number;
  failed: number;
  /** How old values were that have served, and how long loads took. */
  ageMs: Durations;
  loadMs: Durations;
  /** Time that hits and stale answers would have waited, milliseconds. */
  savedMs: number;
}

/** A remark on the application, in words. */
export interface Finding {
  /**
   * `'repeated-calls'`: N+1, requests of a route send one upstream the same URL or command three times and more, on average;
   * `'pool-wait'`: they wait for a connection of a watched pool;
   * `'missed-runs'`: a measured cron job or interval has not started for three of its periods.
   */
  kind: string;
  /** `'GET /orders'`; null when it is no route's. */
  route: string | null;
  text: string;
}

/** Statistics of one route. Durations are of completed requests, with a relative error of at most 1 %. */
export interface RouteSnapshot {
  method: string;
  /** The pattern; unmatched requests share one entry with `''`. */
  route: string;
  handler: string | null;
  /** All that ended, aborted included; cumulative. */
  count: number;
  aborted: number;
  inFlight: number;
  /** Completed with a status of 500 or more. */
  errors: number;
  /** Their sum is `count - aborted`. */
  statuses: Readonly<Record<'1xx' | '2xx' | '3xx' | '4xx' | '5xx', number>>;
  durationMs: { mean: number; p50: number; p90: number; p95: number; p99: number; max: number };
  /** Until the head was sent, aborted requests that got one included: what matters of a stream. Null while none was sent. */
  firstByteMs: { p50: number; p95: number; p99: number } | null;
  over: readonly { ms: number; count: number }[];
  /** Event-loop milliseconds that requests of this route are proven to have blocked. */
  blockedMs: number;
  /** Null with `upstream: false`, and before a request has completed. */
  time: RouteTime | null;
  upstream: readonly RouteUpstream[];
}

/** Milliseconds; relative error of the quantiles at most 1 %. */
export interface Durations {
  mean: number;
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/** Work in worker threads since the application started; `threads`, `running` and `pending` are of now. */
export interface OffloadStats {
  threads: number;
  /** Calls that a thread has, or that wait for it to start. */
  running: number;
  /** Calls that wait for a thread. */
  pending: number;
  /** Each call ends as one of these four. */
  done: number;
  failed: number;
  timedOut: number;
  /** Without a worker: there was no room, or none could start. */
  refused: number;
  /** In the worker, from the start of the method to its end. */
  runMs: Durations;
  /** The main thread's part of sending arguments and taking the result. */
  cloneMs: Durations;
  /** From the call to the start of the method. */
  waitMs: Durations;
  /** Time in which the workers were busy with calls, less the cloning on the main thread. Below 0: not worth it. */
  savedLoopMs: number;
  /** Time in which the container's CPU limit throttled the process while calls were running; 0 where no limit is visible. */
  throttledMs: number;
}

/** All calls of one measured method since the application started; `running` is of now. */
export interface WorkSnapshot {
  type: WorkType;
  /** `'ReportsJob.rebuild'` */
  name: string;
  /** Calls that have ended. */
  count: number;
  /** Calls that threw, part of `count`. */
  failed: number;
  /** Calls that began while another one was still running. */
  overlapped: number;
  running: number;
  /** When the last call began, epoch milliseconds; 0: never. */
  lastAt: number;
  durationMs: Durations;
}

/** Everything that is known now. What a switched-off feature would fill is null (routes: empty). */
export interface PerfSnapshot {
  /** Epoch milliseconds. */
  at: number;
  routes: readonly RouteSnapshot[];
  eventLoop: EventLoopSnapshot | null;
  resources: ResourceSample | null;
  defer: DeferStats | null;
  compression: CompressionStats | null;
  /** Null without the extension `offload()`. */
  offload: OffloadStats | null;
  upstream: readonly UpstreamSnapshot[];
  /** The twenty that took most time in the last hour; `PerfService.users()` lists more. */
  users: readonly UserUse[];
  /** Messages, jobs, events and methods that are measured. */
  work: readonly WorkSnapshot[];
  findings: readonly Finding[];
  /** By upstream; null without `extensions: [resilience(…)]`. */
  resilience: Readonly<Record<string, ResilientUpstreamStats>> | null;
  /** Null without the extension `cache()`. */
  cache: readonly CachedMethodStats[] | null;
}
