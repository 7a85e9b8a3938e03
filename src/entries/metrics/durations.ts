import { entryOf } from '../../core/entry-of.js';
import type { SeriesCap } from './series-cap.js';

/** What tells series apart, in a record as in a histogram. */
export interface Measurement {
  method: string;
  route: string;
  handler: string | null;
  status: number;
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
    'http.response.status_code': status,
  }),
};

const HANDLER: Duration = {
  name: 'perf.handler.duration',
  help: 'Duration of the messages, events and resolvers that PerfInterceptor measures.',
  prometheus: 'perf_handler_duration_seconds',
  subjectOf: ({ handler, route }) => handler ?? route,
  attributesOf: ({ method, status }, handler) => ({ kind: method.toLowerCase(), handler, status }),
};

export const DURATIONS: readonly Duration[] = [REQUEST, HANDLER];

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

/** The series of all durations, the same object for equal measurements each time. */
export class SeriesIndex<L> {
  private readonly known = new Map<string, Series<L>>();

  constructor(
    private readonly cap: SeriesCap,
    private readonly labelsOf: (attributes: Attributes) => L,
  ) {}

  of(measurement: Measurement): Series<L> {
    const { method, status } = measurement;
    const duration = isHttp(method) ? REQUEST : HANDLER;
    const subject = this.cap.admit(duration.subjectOf(measurement));
    const key = `${method} ${status} ${subject}`;
    return entryOf(this.known, key, () => ({
      duration,
      labels: this.labelsOf(duration.attributesOf(measurement, subject)),
    }));
  }
}
