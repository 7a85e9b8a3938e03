// The server's answers to the page: plain JSON. Durations are milliseconds, times epoch milliseconds.
import type { PodMinute } from '../ports/history.js';
import type { Rejected } from '../ports/rejected.js';
import type { BlockCause, ResourceSample } from '../core/record.js';
import type { CompressionStats, DeferStats, EventLoopSnapshot, UpstreamSnapshot, UserUse } from '../core/snapshot.js';

/** Points of each chart. At the resources' interval, 10 s by default: twenty minutes. */
export const MAX_POINTS = 120;
/** Samples of a route's `recent`, and of what counts as lately: at two seconds each, 80 s. */
export const WINDOW = 40;

/** The sections of the page. */
export type SectionName = 'now' | 'pods' | 'requests' | 'blocks' | 'container' | 'deferred' | 'upstreams' | 'users';

/** Something that is wrong now, in one sentence. */
export interface Problem {
  level: 'bad' | 'warn';
  text: string;
  section: SectionName;
}

/** One route since the process started; of all pods, in the last hour. What is absent is 0, or unknown. */
export interface RouteRow {
  id: string;
  /** `'GET /users/:id'` */
  name: string;
  handler?: string;
  count: number;
  errors?: number;
  aborted?: number;
  inFlight?: number;
  /** mean, p50, p95, p99, max */
  ms: [number, number, number, number, number];
  /** Requests that took longer, in the order of `overMs`. */
  over?: number[];
  blockedMs?: number;
  /** Means of a request, milliseconds: own CPU (null where nothing is sampled), upstream, waiting for a connection, for the loop. */
  time?: [own: number | null, upstream: number, pool: number, loop: number];
  /** Requests between samples, the newest last. */
  recent?: number[];
}

/** The routes without a row, together. */
export interface OtherRoutes {
  routes: number;
  count: number;
  errors: number;
}

/** Blocks of one route, line and cause. */
export interface BlockRow {
  id: number;
  /** The time of the last one; all below the counts is of it too. */
  at: number;
  /** The time of the first one. */
  since: number;
  count: number;
  totalMs: number;
  maxMs: number;
  durationMs: number;
  cause: BlockCause;
  /** `'GET /users/:id'`; null when nobody is known. */
  route: string | null;
  handler: string | null;
  /** False: the route is a suspect. */
  proven: boolean;
  location: string | null;
  stack: string[];
  gcMs: number;
  /** How many requests waited, and of which routes. */
  waited: number;
  waiters: string[];
  curl: string | null;
}

/** Deferred work that failed for good. */
export interface FailedWork {
  at: number;
  name: string;
  route: string | null;
  outcome: string;
  attempt: number;
  durable: boolean;
  error: string | null;
}

export interface ExperimentRow {
  gate: string;
  text: string;
  caveats: readonly string[];
  relativeDelta: number | null;
  /** Null: the whole line. */
  ci: readonly [number, number] | null;
}

/** One step of the last hours: when it begins, requests and errors a second, p50, p95, p99; and of the same hour last week. */
export type PastRow = [
  at: number,
  perSecond: number,
  errorsPerSecond: number,
  p50: number | null,
  p95: number | null,
  p99: number | null,
  weekPerSecond: number | null,
  weekP95: number | null,
];

/** The last hours, where a history is kept, and when a release came in them. */
export interface Past {
  readonly rows: readonly PastRow[];
  readonly releases: readonly { readonly at: number; readonly release: string }[];
}

/** Each section as a whole; null where its feature is off. */
export interface Sections {
  now: Problem[];
  eventLoop: EventLoopSnapshot | null;
  blocks: BlockRow[];
  resources: ResourceSample | null;
  defer: DeferStats | null;
  failedWork: FailedWork[];
  rejected: readonly Rejected[];
  upstream: UpstreamSnapshot[];
  users: UserUse[];
  compression: CompressionStats | null;
  experiments: ExperimentRow[];
  past: Past;
}

/** Between two samples: time, requests and errors a second, p50, p95, p99, busy share and p99 delay of the loop. */
export type TrafficPoint = [
  at: number,
  perSecond: number | null,
  errorsPerSecond: number | null,
  p50: number | null,
  p95: number | null,
  p99: number | null,
  busy: number | null,
  delayMs: number | null,
];

/** Time, CPU cores used, working set bytes, share of throttled periods. */
export type ContainerPoint = [
  at: number,
  cores: number | null,
  memoryBytes: number | null,
  throttledRatio: number | null,
];

/** The process that answers. */
export interface ProcessInfo {
  pod: string;
  pid: number;
  release: string | null;
  node: string;
  startedAt: number;
}

/** One pod's last minute, as it published it. */
export interface PodRow extends PodMinute {
  /** Figures by which it is the odd one. */
  odd: (keyof PodMinute)[];
}

/** One route in depth. */
export interface RouteDetail {
  id: string;
  statuses: Readonly<Record<string, number>>;
  /** How many took at most so long, and longer than the one before; the last has no bound. */
  distribution: { ms: number | null; count: number }[];
  users: UserUse[];
  upstream: readonly { target: string; callsPerRequest: number; wallMs: number }[];
  blocks: number[];
  past: Past;
}

/** All pods, or one. */
export type Scope = 'fleet' | 'pod';

/** The answer of `data`. */
export interface DashboardData {
  at: number;
  /** All pods of a shared history, or the pod that answers. */
  scope: Scope;
  /** Whether there are all pods to choose. */
  isShared: boolean;
  /** Null for one pod. */
  pods: PodRow[] | null;
  /** The cost of making it for the application's event loop. */
  tookMs: number;
  /** The script's name of this server's page. */
  assets: string;
  process: ProcessInfo;
  overMs: number[];
  routes: RouteRow[];
  other: OtherRoutes | null;
  /** Routes that the filter finds; null without one. */
  found: RouteRow[] | null;
  /** Null with `latency: false`. */
  totals: { count: number; errors: number; inFlight: number; routes: number } | null;
  traffic: TrafficPoint[];
  container: ContainerPoint[];
  sections: Sections;
  /** Null where none is open, or it is not known. */
  detail: RouteDetail | null;
}
