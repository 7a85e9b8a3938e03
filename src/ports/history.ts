import type { Durations } from '../core/snapshot.js';
import type { Verdict, VerdictReason } from '../core/verdict.js';

/** A stretch of time, epoch milliseconds; `to` is no part of it. */
export interface TimeRange {
  from: number;
  to: number;
}

/** One step of a series. */
export interface HistoryPoint {
  /** When it begins, epoch milliseconds. */
  at: number;
  /** All requests that ended, aborted included. */
  count: number;
  errors: number;
  aborted: number;
  /** Durations of completed requests; percentiles with a relative error of at most 1.6 %. */
  durationMs: Durations;
  over: readonly { ms: number; count: number }[];
  /** Event-loop milliseconds that these requests are proven to have blocked. */
  blockedMs: number;
  /** Mean a request; 0 with `upstream: false`. */
  upstreamMs: number;
}

/** The past, step by step. A step in which no process ran has no point. */
export interface HistorySeries {
  stepMs: number;
  points: readonly HistoryPoint[];
}

/** A series, and when each release came in it, oldest first; not those that were there when it began. */
export interface MarkedSeries extends HistorySeries {
  releases: readonly { at: number; release: string }[];
}

/** Figures of one route, or of the whole, in a range. */
export interface RangeFigures {
  count: number;
  errors: number;
  aborted: number;
  /** Durations of completed requests; percentiles with a relative error of at most 1.6 %. */
  durationMs: Durations;
  over: readonly { ms: number; count: number }[];
  blockedMs: number;
  /** Means a request, milliseconds; null where it is unknown. `ownMs` is CPU time, `waitMs` the loop busy with something else. */
  upstreamMs: number | null;
  poolWaitMs: number | null;
  ownMs: number | null;
  waitMs: number | null;
}

/** A change and its interval of 95 %, from windows as units; -Infinity to Infinity where there are too few. */
export interface Change {
  value: number;
  ci: readonly [number, number];
}

export interface RouteComparison {
  /** `'GET /users/:id'`; null for all routes together. */
  route: string | null;
  before: RangeFigures;
  after: RangeFigures;
  /** Relative change of the mean duration: 0.5 is half as much again. */
  latency: Change;
  /** Change of the share of requests that failed: 0.05 is five of a hundred more. */
  errorRate: Change;
  /** The parts of the change of the mean; empty where there is none. */
  because: readonly VerdictReason[];
}

/** One range against another. */
export interface PerfComparison {
  before: TimeRange & { releases: readonly string[] };
  after: TimeRange & { releases: readonly string[] };
  /** All routes together. */
  whole: RouteComparison;
  /** Routes whose total time changed most come first. */
  routes: readonly RouteComparison[];
  /** Reasons for doubt: missing data, and what else may have caused a change. */
  caveats: readonly string[];
  text: string;
}

/** The ranges of {@link HistoryReader.compare}: the last 24 hours with those before, or with those a week before, or two releases. */
export type CompareWhat = 'day' | 'week' | 'release' | { before: TimeRange; after: TimeRange };

/** Counts of a stretch of time. */
export type Counts = Pick<HistoryPoint, 'count' | 'errors' | 'over'>;

/** One pod's last minute. */
export interface PodMinute {
  pod: string;
  instance: string;
  release: string;
  /** When it ended, epoch milliseconds. */
  at: number;
  requests: number;
  errors: number;
  p95Ms: number;
  /** Shares, 0 to 1: the event loop was busy, the kernel throttled the process (above 1 with several CPUs). */
  loopBusy: number;
  throttled: number;
  /** Resident set of the process. */
  memoryBytes: number;
}

/** The history of an application; not provided with `history: false`. */
export abstract class HistoryReader {
  /** `own`: of a shared history, this process alone. */
  abstract history(
    range: TimeRange & { stepMs?: number },
    options?: { route?: string | null; own?: boolean },
  ): Promise<MarkedSeries>;
  abstract compare(what: CompareWhat, options?: { route?: string | null }): Promise<PerfComparison>;
  /** Active ones first, then the resolved of the last days; the newest first. */
  abstract verdicts(): readonly Verdict[];
  /** Whether several pods share it: then what is read is all of them. */
  abstract readonly shared: boolean;
  /** The last minute of every living pod; none where nobody shares the history. */
  abstract pods(): Promise<readonly PodMinute[]>;
  /** Each route in the range, the one whose requests took most time first; null while a shared store cannot be read. */
  abstract routes(range: TimeRange): Promise<ReadonlyMap<string, RangeFigures> | null>;
  /** Counts of each route, from this process's memory. A route without calls is missing. */
  abstract countsSince(from: number): Promise<ReadonlyMap<string, Counts>>;
}
