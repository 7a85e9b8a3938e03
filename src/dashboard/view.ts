// The server's answers to the page: plain JSON. Durations are milliseconds, times epoch milliseconds.
import type { BlockRecord, DeferredRecord } from '../core/record.js';
import type { PerfSnapshot, RouteSnapshot, UserUse } from '../core/snapshot.js';
import type { ExperimentAnswer } from '../ports/experiment-answers.js';
import type { PodMinute } from '../ports/history.js';
import type { Rejected } from '../ports/rejected.js';

/** Points of each chart. At the resources' interval, 10 s by default: twenty minutes. */
export const MAX_POINTS = 120;

/** All pods, or one. */
export type Scope = 'fleet' | 'pod';
type Maybe = number | null;

/** Something that is wrong now, in one sentence. */
export interface Problem {
  level: 'bad' | 'warn';
  text: string;
  section: 'pods' | 'requests' | 'blocks' | 'container' | 'deferred' | 'upstreams';
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
  ms: [mean: number, p50: number, p95: number, p99: number, max: number];
  /** Requests that took longer, in the order of `overMs`. */
  over?: number[];
  blockedMs?: number;
  /** Means of a request: own CPU (null where nothing is sampled), upstream, waiting for a connection, for the loop, and the rest. */
  time?: [own: Maybe, upstream: number, pool: number, loop: number, idle: number];
}

/** Blocks of one route, line and cause. */
export interface BlockRow extends Pick<BlockRecord, 'durationMs' | 'cause' | 'location' | 'stack' | 'gcMs' | 'curl'> {
  id: number;
  /** The time of the last one; all below the counts is of it too. */
  at: number;
  /** The time of the first one. */
  since: number;
  count: number;
  totalMs: number;
  maxMs: number;
  /** `'GET /users/:id'`; null when nobody is known. */
  route: string | null;
  handler: string | null;
  /** False: the route is a suspect. */
  proven: boolean;
  /** How many requests waited, and of which routes. */
  waited: number;
  waiters: string[];
}

/** Deferred work that failed for good. */
export type FailedWork = Pick<DeferredRecord, 'at' | 'name' | 'route' | 'outcome' | 'attempt' | 'durable' | 'error'>;

/**
 * A step of a chart: time, requests and errors a second, p50, p95, p99. Two more follow, in `traffic` the loop's busy share and p99
 * delay, in the last hours requests a second and p95 of the same hour last week.
 */
export type Point = [at: number, perSecond: Maybe, errors: Maybe, p50: Maybe, p95: Maybe, p99: Maybe, Maybe, Maybe];
export type ContainerPoint = [at: number, cores: Maybe, memoryBytes: Maybe];

/** The last hours, where a history is kept, and when a release came in them. */
export interface Past {
  readonly rows: readonly Point[];
  readonly releases: readonly { readonly at: number; readonly release: string }[];
}

type OfSnapshot = 'eventLoop' | 'resources' | 'defer' | 'compression' | 'upstream' | 'users' | 'work';

/** Each section as a whole; null where its feature is off. */
export interface Sections extends Pick<PerfSnapshot, OfSnapshot> {
  now: Problem[];
  blocks: BlockRow[];
  failedWork: readonly FailedWork[];
  rejected: readonly Rejected[];
  experiments: readonly ExperimentAnswer[];
  past: Past;
}

/** One pod's last minute, as it published it, and the figures by which it is the odd one. */
export type PodRow = PodMinute & { odd: (keyof PodMinute)[] };

/** One route in depth. */
export interface RouteDetail {
  row: RouteRow;
  statuses: Readonly<Record<string, number>>;
  /** How many took at most so long, and longer than the one before; the last has no bound. */
  distribution: { ms: number | null; count: number }[];
  users: UserUse[];
  upstream: RouteSnapshot['upstream'];
  past: Past;
}

/** The answer of `data`. */
export interface DashboardData {
  at: number;
  scope: Scope;
  /** Whether there are all pods to choose. */
  isShared: boolean;
  /** The script's name of this server's page. */
  assets: string;
  process: { pod: string; pid: number; release: string | null; node: string; startedAt: number };
  /** By name; of very many the odd ones come first. Null for one pod. */
  pods: PodRow[] | null;
  /** How many pods there are. */
  podCount: number;
  overMs: number[];
  /** The routes that took most time. */
  routes: RouteRow[];
  /** Null with `latency: false`. */
  totals: { count: number; errors: number; inFlight: number; routes: number } | null;
  traffic: Point[];
  container: ContainerPoint[];
  sections: Sections;
  /** Null where none is open, or it is not known. */
  detail: RouteDetail | null;
}
