import { entryOf } from '../../core/entry-of.js';
import { classStatus, StatusCap } from '../../core/status-cap.js';
import { OVERFLOW, type SeriesCap } from './series-cap.js';

/** Identifies a series, of a record as of a histogram. */
export interface Measurement {
  method: string;
  route: string;
  handler: string | null;
  /** Null for the time to the first byte, which is counted by route alone. */
  status: number | null;
}

export type Attributes = Readonly<Record<string, string | number>>;

/** What is counted in a histogram, in seconds; its names in both vocabularies. */
export interface Duration {
  name: string;
  help: string;
  prometheus: string;
  /** What its series are named after; there may be any number of them. */
  subjectOf(of: Measurement): string;
  /** OpenTelemetry's names. */
  attributesOf(of: Measurement, subject: string): Attributes;
}

const REQUEST: Duration = {
  name: 'http.server.request.duration',
  help: 'Duration of completed HTTP requests, to the end of the response.',
  prometheus: 'http_server_request_duration_seconds',
  subjectOf: ({ route }) => route,
  attributesOf: ({ method, status }, route) => ({
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status!,
  }),
};

const FIRST_BYTE: Duration = {
  name: 'perf.http.time_to_first_byte',
  help: 'Time until the head of a response was sent, aborted requests that got one included.',
  prometheus: 'perf_http_time_to_first_byte_seconds',
  subjectOf: ({ route }) => route,
  attributesOf: ({ method }, route) => ({ 'http.request.method': method, 'http.route': route }),
};

const HANDLER: Duration = {
  name: 'perf.handler.duration',
  help: 'Duration of the messages, events and resolvers that PerfInterceptor measures.',
  prometheus: 'perf_handler_duration_seconds',
  subjectOf: ({ handler, route }) => handler ?? route,
  attributesOf: ({ method, status }, handler) => ({ kind: method.toLowerCase(), handler, status: status! }),
};

export const DURATIONS: readonly Duration[] = [REQUEST, FIRST_BYTE, HANDLER];

/** Seconds. The buckets that OpenTelemetry's HTTP conventions advise. */
export const DEFAULT_BOUNDS_SECONDS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];

/** What `PerfInterceptor` puts in the place of a method. A request cannot have it: its method would be `_OTHER`. */
const HANDLER_METHODS: ReadonlySet<string> = new Set(['RPC', 'WS', 'GRAPHQL']);

export const isHttp = (method: string): boolean => !HANDLER_METHODS.has(method);

/** One series of a duration: `labels` in the form that a sink writes. */
export interface Series<L> {
  readonly duration: Duration;
  readonly labels: L;
}

/** A series is 17 lines of a scrape. Beyond this many, new ones have the class of their status; beyond twice as many, no route. */
const MAX_SERIES = 5_000;
/** Shared by all routes. */
const MAX_UNREGISTERED_STATUSES = 20;

/** The series of all durations, the same object for equal measurements each time. */
export class SeriesIndex<L> {
  /** A series goes on counting what it has counted once: no counter may go back. */
  private readonly chosen = new Map<string, Series<L>>();
  private readonly made = new Map<string, Series<L>>();
  private readonly statuses = new StatusCap(MAX_UNREGISTERED_STATUSES);

  constructor(
    private readonly cap: SeriesCap,
    private readonly labelsOf: (attributes: Attributes) => L,
    private readonly maxSeries = MAX_SERIES,
  ) {}

  of(measurement: Measurement): Series<L> {
    const { method, status } = measurement;
    const duration = status === null ? FIRST_BYTE : isHttp(method) ? REQUEST : HANDLER;
    const subject = this.cap.admit(duration.subjectOf(measurement));
    const wanted = status === null ? measurement : { ...measurement, status: this.statuses.admit(status) };
    return entryOf(this.chosen, keyOf(wanted, subject), () => this.choose(duration, wanted, subject));
  }

  private choose(duration: Duration, wanted: Measurement, subject: string): Series<L> {
    const { size } = this.made;
    if (size < this.maxSeries) return this.make(duration, wanted, subject);
    const { status } = wanted;
    const coarse = status === null ? wanted : { ...wanted, status: classStatus(status) };
    return this.make(duration, coarse, size < 2 * this.maxSeries ? subject : OVERFLOW);
  }

  private make(duration: Duration, measurement: Measurement, subject: string): Series<L> {
    return entryOf(this.made, keyOf(measurement, subject), () => ({
      duration,
      labels: this.labelsOf(duration.attributesOf(measurement, subject)),
    }));
  }
}

const keyOf = ({ method, status }: Measurement, subject: string): string => `${method} ${status} ${subject}`;
