import { authorizeOption, pathOption, type Authorize } from '../../core/guarded.js';
import { ascending, boolean, number, object, choice, optional, optionError, string, value } from '../../core/option.js';
import type { Option, Resolved } from '../../core/option.js';
import { port } from '../../core/shared-options.js';
import { DEFAULT_BOUNDS_SECONDS, MAX_SERIES } from '../metrics/durations.js';
import type { AnyRegistry } from './collector.js';
import type { Labels } from './scraped-metric.js';

export interface PrometheusSinkOptions {
  /**
   * Path of the endpoint. No guard, global prefix or API document applies to it.
   * @default '/metrics'
   */
  path?: string;
  /**
   * Listens at this port, on all interfaces, and not on the application's; closed with the application. 0 is any free
   * port, which is then `sink.port`.
   * @default the application's port
   */
  port?: number;
  /**
   * Begins the name of every metric, for example `'shop_'`. Beside cAdvisor, whose `container_…` names are the same, it
   * keeps sums from counting double.
   * @default ''
   */
  prefix?: string;
  /**
   * Upper bounds of the histograms' buckets, seconds, ascending; `+Inf` is added.
   * @default [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
   */
  buckets?: readonly number[];
  /**
   * Labels of every metric, for example `{ team: 'shop' }`. A label that a metric has itself stays its own.
   * @default none
   */
  labels?: Readonly<Record<string, string>>;
  /**
   * A prom-client registry of yours, to expose its metrics and these together.
   * @default an own one for each application
   */
  registry?: AnyRegistry;
  /**
   * Decides who may read the endpoint; gets the request of Fastify or Express, or Node's with `port`. Others are answered with 403. It is not
   * called for `/metrics` of `eventLoop.port`, which is this machine's unless `eventLoop.host` opens it.
   * @default everyone
   */
  authorize?: Authorize;
  /**
   * Series of the request duration, one for each method, route and status: further ones share the route `other`. The same number bounds
   * the routes of other metrics.
   * @default 1000
   */
  maxRoutes?: number;
  /**
   * `'code'` labels requests with their status, `'class'` with its class (`2xx`), which is a third of the series. A route with more
   * than 8 statuses is counted by class in any case.
   * @default 'code'
   */
  statusLabel?: 'code' | 'class';
  /**
   * Writes OpenMetrics, with the trace of the slowest request of each bucket since the last scrape. Needs `@opentelemetry/api`; a
   * `registry` of yours must be one of `Registry.OPENMETRICS_CONTENT_TYPE`.
   * @default false
   */
  exemplars?: boolean;
}

/** https://prometheus.io/docs/concepts/data_model/: colons are for recording rules, `__` and `le` are for Prometheus itself. */
const NAME = /^[a-zA-Z_]\w*$/;

const LABELS = 'an object whose keys are letters, digits and `_`, without a digit or `__` first, and not `le`';
const labels: Option<Labels> = {
  expected: 'an object of label names and their texts',
  read(given, path) {
    if (given === undefined) return {};
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      throw optionError(path, labels.expected, given);
    }
    for (const [name, text] of Object.entries(given)) {
      if (typeof text !== 'string') throw optionError(`${path}.${name}`, 'a text', text);
      if (!NAME.test(name) || name.startsWith('__') || name === 'le') {
        throw optionError(path, LABELS, name);
      }
    }
    return Object.freeze({ ...(given as Labels) });
  },
};

export const prometheusOption = object({
  path: pathOption('/metrics'),
  port,
  prefix: string({
    default: '',
    what: 'the beginning of a metric name: letters, digits and `_`, no digit first',
    test: (prefix) => prefix === '' || NAME.test(prefix),
  }),
  buckets: ascending('seconds', { default: DEFAULT_BOUNDS_SECONDS, least: 1 }),
  labels,
  registry: optional(
    value<AnyRegistry>('a Registry of prom-client', (given) => {
      return typeof (given as Partial<AnyRegistry> | null)?.registerMetric === 'function';
    }),
  ),
  authorize: optional(authorizeOption),
  maxRoutes: number({ default: MAX_SERIES, unit: 'a number of series', min: 1, integer: true }),
  statusLabel: choice(['code', 'class'], { default: 'code' }),
  exemplars: boolean({ default: false }),
});

export type ResolvedPrometheusOptions = Resolved<typeof prometheusOption>;
