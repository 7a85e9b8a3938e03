import { getOrAdd } from '../../core/get-or-add.js';
import { classStatus } from '../../core/status-class.js';
import { isWork } from '../../core/work-methods.js';
import { OVERFLOW, type SeriesCap } from './series-cap.js';

/** Identifies a series, of a record as of a histogram. */
export interface Measurement {
  method: string;
  route: string;
  handler: string | null;
  /** A code, or its class as `'4xx'`; null for the time to the first byte, which is counted by route alone. */
  status: number | string | null;
}

export type Attributes = Readonly<Record<string, string | number>>;

/** A histogram in seconds, with its names in both vocabularies. */
export interface Duration {
  name: string;
  help: string;
  prometheus: string;
  /** The route or handler of a series, of which there may be any number. */
  readSubject(of: Measurement): string;
  /** OpenTelemetry's names. */
  buildAttributes(of: Measurement, subject: string): Attributes;
}

export const REQUEST: Duration = {
  name: 'http.server.request.duration',
  help: 'Duration of completed HTTP requests, to the end of the response.',
  prometheus: 'http_server_request_duration_seconds',
  readSubject: ({ route }) => route,
  buildAttributes: ({ method, status }, route) => ({
    'http.request.method': method,
    'http.route': route,
    'http.response.status_code': status!,
  }),
};

const FIRST_BYTE: Duration = {
  name: 'perf.http.time_to_first_byte',
  help: 'Time until the head of a response was sent, aborted requests that got one included.',
  prometheus: 'perf_http_time_to_first_byte_seconds',
  readSubject: ({ route }) => route,
  buildAttributes: ({ method }, route) => ({ 'http.request.method': method, 'http.route': route }),
};

const HANDLER: Duration = {
  name: 'perf.handler.duration',
  help: 'Duration of measured work that no HTTP request starts: jobs, messages, events, sockets, resolvers.',
  prometheus: 'perf_handler_duration_seconds',
  readSubject: ({ handler, route }) => handler ?? route,
  buildAttributes: ({ method, status }, handler) => ({ kind: method.toLowerCase(), handler, status: status! }),
};

export const DURATIONS: readonly Duration[] = [REQUEST, FIRST_BYTE, HANDLER];

/** Seconds. The buckets that OpenTelemetry's HTTP conventions advise. */
export const DEFAULT_BOUNDS_SECONDS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];

export const isHttp = (method: string): boolean => !isWork(method);

/** One series of a duration: `labels` in the form that a sink writes. */
export interface Series<L> {
  readonly duration: Duration;
  readonly labels: L;
}

/** Series of one duration, each 17 lines of a scrape. Beyond them a new one has the class of its status and no route. */
export const MAX_SERIES = 1_000;
/** A route with more statuses, such as a proxy's, is counted by class from then on. */
const MAX_CODES = 8;

export interface SeriesRules<L> {
  toLabels(attributes: Attributes): L;
  /** Every status is counted by class. */
  byClass?: boolean;
  maxSeries?: number;
}

/** The series of all durations, the same object for equal measurements each time. */
export class SeriesIndex<L> {
  private readonly chosen = new Map<string, Series<L>>();
  private readonly made = new Map<Duration, Map<string, Series<L>>>();
  /** The statuses of a method and subject; null: by class. */
  private readonly codes = new Map<string, Set<number> | null>();

  constructor(
    private readonly cap: SeriesCap,
    private readonly rules: SeriesRules<L>,
  ) {}

  /** A measurement stays in its series, unless its route begins to be counted by class. */
  of(measurement: Measurement): Series<L> {
    const { method, status } = measurement;
    const duration = status === null ? FIRST_BYTE : isHttp(method) ? REQUEST : HANDLER;
    const subject = this.cap.admit(duration.readSubject(measurement));
    const wanted =
      typeof status === 'number'
        ? { ...measurement, status: this.groupStatus(duration, method, subject, status) }
        : measurement;
    return getOrAdd(this.chosen, buildKey(wanted, subject), () => this.choose(duration, wanted, subject, status));
  }

  private groupStatus(duration: Duration, method: string, subject: string, status: number): number | string {
    const { byClass = false } = this.rules;
    const key = `${method} ${subject}`;
    const codes = getOrAdd(this.codes, key, () => (byClass ? null : new Set()));
    if (codes === null) return nameClass(status);
    codes.add(status);
    if (codes.size <= MAX_CODES) return status;
    this.codes.set(key, null);
    for (const code of codes) {
      const old = buildKey({ method, status: code }, subject);
      this.chosen.delete(old);
      this.made.get(duration)?.delete(old);
    }
    return nameClass(status);
  }

  private choose(duration: Duration, wanted: Measurement, subject: string, status: Measurement['status']): Series<L> {
    const size = this.made.get(duration)?.size ?? 0;
    if (size < (this.rules.maxSeries ?? MAX_SERIES)) return this.make(duration, wanted, subject);
    const coarse = typeof status === 'number' ? { ...wanted, status: nameClass(status) } : wanted;
    return this.make(duration, coarse, OVERFLOW);
  }

  private make(duration: Duration, measurement: Measurement, subject: string): Series<L> {
    const made = getOrAdd(this.made, duration, () => new Map<string, Series<L>>());
    return getOrAdd(made, buildKey(measurement, subject), () => ({
      duration,
      labels: this.rules.toLabels(duration.buildAttributes(measurement, subject)),
    }));
  }
}

const nameClass = (status: number): string => `${classStatus(status) / 100}xx`;

const buildKey = ({ method, status }: Pick<Measurement, 'method' | 'status'>, subject: string): string =>
  `${method} ${status} ${subject}`;
