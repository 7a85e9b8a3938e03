import type { Verdict } from './verdict.js';

/** The unit of randomisation: who a request was for. */
export interface Unit {
  userId: string;
  customIds?: Readonly<Record<string, string>>;
}

/** Size of the data a request worked on, as the application reported it. */
export interface SizeNote {
  rows?: number;
  bytes?: number;
}

/** A span of a trace, as OpenTelemetry names it. */
export interface SpanRef {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Bit 0: it is sampled. */
  readonly traceFlags?: number;
}

/** The kind of server that the application calls. */
export type UpstreamKind = 'http' | 'redis' | 'sql' | 'other';

/**
 * The time of a request by what it was spent on, milliseconds: `upstreamMs + poolWaitMs + idleMs + busyMs` is its `durationMs`.
 * The event loop's time is the whole process's: what was busy may have been another request's work.
 */
export interface RequestTime {
  /** At least one of its upstream calls was under way: the union of them, not their sum. */
  upstreamMs: number;
  /** No call was under way, and it waited for a connection of a watched pool. */
  poolWaitMs: number;
  /** Neither, and the event loop waited for events: timers, and input or output that no client reports. */
  idleMs: number;
  /** Neither, and the event loop was busy. */
  busyMs: number;
  /** Part of `upstreamMs` in which the event loop was busy: the answer may have been there already. */
  upstreamBusyMs: number;
  /** Calls that began while it was in flight, and could not be placed on any request. */
  unplacedCalls: number;
}

/** The calls of a request to one upstream. */
export interface UpstreamUse {
  /** `'http api.github.com'`, `'redis cache:6379'`. */
  target: string;
  kind: UpstreamKind;
  calls: number;
  /** The sum of its timed calls, milliseconds; calls at the same time count each. */
  wallMs: number;
  maxMs: number;
  /** Calls that failed, timed out or were given up by us, and answers with a status of 500 or more. */
  errors: number;
}

/** One request, written when its response has ended or its client has gone. */
export interface RequestRecord {
  kind: 'request';
  /** An incoming `x-request-id` that matches `/^[\w.:\/+=-]{1,128}$/`, else generated. */
  id: string;
  method: string;
  /** The pattern, for example `/users/:id`; `''` when no route matched. */
  route: string;
  /** `'UsersController.findOne'`. For a route that is no controller's: the measured resolver that took longest, else null. */
  handler: string | null;
  /** Final status; 499 when the client left before headers were sent. */
  status: number;
  outcome: 'completed' | 'aborted';
  /** Epoch milliseconds. */
  startedAt: number;
  /** Milliseconds from the first byte of work to the end of the response (or the abort). */
  durationMs: number;
  /** Milliseconds until the head was sent: the number that matters for streams and SSE. Null when none was. */
  firstByteMs: number | null;
  /** Milliseconds of it: event-loop blocks this request is proven to have caused. */
  blockedMs: number;
  /** Milliseconds of it: blocks that others have caused for sure, and pauses of the process, while it was in flight. */
  delayedMs: number;
  /** Gate name to `'on'` or `'off'`. */
  variants: Readonly<Record<string, string>> | null;
  /** The unit of the request: by `experiments.unit` once a gate was checked in it, else by `unit`. */
  unit: Unit | null;
  note: SizeNote | null;
  /** The release that served it; null when unknown. */
  release: string | null;
  /** It took longer than the `slowMs` of its route; absent where it did not. */
  slow?: true;
  /** Null with `upstream: false`. */
  time: RequestTime | null;
  /** One entry a target; null with `upstream: false`. */
  upstream: readonly UpstreamUse[] | null;
  /** The trace and span that were active when the request started; absent where no sink knows a tracer, or none was. */
  traceId?: string;
  spanId?: string;
}

/** Names one request in another record. The URL is redacted. */
export interface RequestRef {
  id: string;
  method: string;
  route: string;
  handler: string | null;
  url: string;
  traceId: string | null;
  /** The span of it that was active when the request started; absent where no sink knows a tracer, or none was. */
  spanId?: string;
}

/** Why the event loop was blocked. */
export type BlockCause = 'javascript' | 'sync-io' | 'gc' | 'not-scheduled' | 'pile-up' | 'unknown';

/** One event-loop block over the threshold. */
export interface BlockRecord {
  kind: 'block';
  /** Epoch milliseconds. */
  startedAt: number;
  /** Upper bound, milliseconds. */
  durationMs: number;
  /** Lower bound, milliseconds. */
  provenMs: number;
  cause: BlockCause;
  /** The request in flight in whose async context at least half of it ran. */
  request: RequestRef | null;
  /** The request where its context is no proof: a handle that requests share (a pool's socket, a worker) started the code. */
  suspect: RequestRef | null;
  /** `'file:line:column'` of the first frame in the application's code, source-mapped. */
  location: string | null;
  /** `'ReportsService.render'`: the innermost method in the stack of a class that Nest makes, cron jobs and consumers too. */
  method: string | null;
  /** How often the stack was read. */
  samples: number;
  stack: readonly string[];
  /** Milliseconds of garbage collection inside the block. */
  gcMs: number;
  /** Requests that were in flight and waited. Without a named request, those whose code was seen running are left out. */
  delayed: readonly RequestRef[];
  /** A redacted curl line that sends the culprit's request again. */
  curl: string | null;
  note: SizeNote | null;
}

/** Limits and use of the container at one moment. Unknown is `null`; never NaN, never 2^63. */
export interface ResourceSample {
  /** Epoch milliseconds. */
  at: number;
  limits: {
    version: 'v1' | 'v2' | 'hybrid' | 'none';
    source: 'cgroup' | 'override' | 'process';
    trust: 'exact' | 'guess' | 'none';
    /** Effective: the lowest up the tree; null is unlimited or unknown. */
    cpuCores: number | null;
    memoryBytes: number | null;
    memoryHighBytes: number | null;
    /** True where an ancestor's limit, not the own cgroup's, is the effective one. */
    byAncestor: { cpu: boolean; memory: boolean };
  };
  cpu: {
    usageSeconds: number | null;
    userSeconds: number | null;
    systemSeconds: number | null;
    /** CFS periods of the cgroup with the limit. */
    periods: number | null;
    throttledPeriods: number | null;
    throttledSeconds: number | null;
    /** Since the sampler's previous sample; null at first and after a counter reset. */
    window: null | {
      ms: number;
      usageCores: number;
      /** Share of the limit, else of the CPUs it may run on. */
      utilization: number | null;
      /** Share of the CPU request, when it is given (the HPA's view). */
      requestUtilization: number | null;
      periods: number | null;
      throttledPeriods: number | null;
      throttledRatio: number | null;
      throttledMs: number | null;
      throttledByHiddenAncestor: boolean | null;
      /** Milliseconds the main thread was runnable but not running. */
      runQueueMs: number | null;
    };
  };
  memory: {
    usageBytes: number | null;
    workingSetBytes: number | null;
    availableBytes: number | null;
    peakBytes: number | null;
    anonBytes: number | null;
    fileBytes: number | null;
    kernelBytes: number | null;
    oomKills: number | null;
  };
  pressure: { cpuSomeRatio: number | null; memoryFullRatio: number | null };
  process: { cpuSeconds: number; rssBytes: number; heapUsedBytes: number; heapLimitBytes: number };
}

/** One resource sample, once an interval. */
export interface ResourceRecord {
  kind: 'resource';
  sample: ResourceSample;
}

/** One deferred task that has ended. */
export interface DeferredRecord {
  kind: 'deferred';
  /** When it ended, epoch milliseconds. */
  at: number;
  name: string;
  /** Route of its request, such as `/users/:id`; null outside of one. */
  route: string | null;
  /** It went, or was to go, through `defer.store`. */
  durable: boolean;
  outcome: 'completed' | 'failed' | 'timeout' | 'dropped';
  requestId: string | null;
  /** Milliseconds from when the response had ended to the start of the task. */
  waitMs: number;
  /** Milliseconds of the last attempt. */
  runMs: number;
  /** From 1. */
  attempt: number;
  error: string | null;
}

/** A verdict, when it opens and when it is resolved. */
export interface VerdictRecord {
  kind: 'verdict';
  verdict: Verdict;
}

/** Starters of work that is no HTTP request. */
export type WorkType = 'cron' | 'queue' | 'message' | 'event' | 'socket' | 'graphql' | 'method';

/** One call of a method that `@Measured()`, `PerfInterceptor` or `work: true` measures, written when it has ended. */
export interface WorkRecord {
  kind: 'work';
  type: WorkType;
  /** The class and the method: `'ReportsJob.rebuild'`. */
  name: string;
  /** Epoch milliseconds. */
  startedAt: number;
  durationMs: number;
  outcome: 'completed' | 'failed';
  /** Milliseconds of it: event-loop blocks that this call is proven to have caused. */
  blockedMs: number;
  /** Null with `upstream: false`, as the next one is. */
  time: RequestTime | null;
  upstream: readonly UpstreamUse[] | null;
  /** Another call of it was still running when this one began. */
  overlapped: boolean;
}

/** A record for a {@link PerfSink}, discriminated by `kind`. */
export type PerfRecord = RequestRecord | BlockRecord | ResourceRecord | DeferredRecord | VerdictRecord | WorkRecord;
