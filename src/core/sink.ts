import type { PerfRecord, SpanRef } from './record.js';
import type { PerfSnapshot } from './snapshot.js';

/** Cumulative latency of one method, route and status since the application started. */
export interface RouteHistogram {
  method: string;
  route: string;
  handler: string | null;
  status: number;
  /** Completed requests. */
  count: number;
  /** Their total, milliseconds. */
  sumMs: number;
  /** How many took at most each bound (milliseconds, ascending): cumulative counts, as Prometheus wants them. */
  countsAtMost(boundsMs: readonly number[]): number[];
}

/** The application as a sink sees it. */
export interface PerfSinkHost {
  snapshot(): PerfSnapshot;
  /** Cumulative buckets, count and sum per method, route and status. */
  histograms(): Iterable<RouteHistogram>;
  /** Like `histograms()`, until the head was sent, per method and route; aborted requests that got a head are among them. */
  firstByteHistograms?(): Iterable<Omit<RouteHistogram, 'status'>>;
  /** Registers a raw GET route: no guards, no Swagger, no record. Only inside `start()`. */
  get(path: string, answer: (request: unknown) => Promise<{ status: number; type: string; body: string }>): void;
  /** Serves what `read` returns at `/metrics` of `eventLoop.port` as well; the first sink's counts. Only inside `start()`. */
  witness?(read: () => Promise<{ type: string; body: string }>): void;
  /** Logs a cause once and counts its repeats, `count` at a time (1); for what a sink loses outside `publish()` and `flush()`. */
  report?(cause: string, message: string, count?: number): void;
  /** Reads the active span at the start of every request from now on. Only inside `start()`; `current` must not throw. */
  activeSpan?(current: () => SpanRef | null): void;
}

/**
 * A receiver of records. A sink that throws, rejects or hangs never delays a request and never harms another sink;
 * what it loses is counted and reported once per cause.
 */
export interface PerfSink {
  readonly name: string;
  /**
   * Which requests it wants records of: all, those that took longer than the `slowMs` of their route, or none. A record that no sink
   * wants is not built, and building them is most of what measuring costs; one that another sink wants is published to
   * this one too.
   * @default 'all'
   */
  readonly requests?: 'all' | 'slow' | 'none';
  /** Once, before the server listens, at the same time as other sinks. One that fails or is late gets no records and is not closed. */
  start?(host: PerfSinkHost): void | Promise<void>;
  /** Batches, off the request path. The next batch comes when the returned promise has settled. */
  publish(records: readonly PerfRecord[]): void | Promise<void>;
  /** Sends what is still buffered, within the deadline (milliseconds). */
  flush?(deadlineMs: number): Promise<void>;
  /** `host` is what `start()` was given: one object may be the sink of several applications. */
  close?(host?: PerfSinkHost): Promise<void>;
}
