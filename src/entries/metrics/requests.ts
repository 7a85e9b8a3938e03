import type { RouteSnapshot } from '../../core/snapshot.js';
import { isHttp } from './durations.js';
import { summed, type Measured, type Metric, type Point } from './metric.js';
import { OVERFLOW, type SeriesCap } from './series-cap.js';

/** What `PerfInterceptor` measures stands among the routes of a snapshot, and is no request. */
const httpRoutes = ({ snapshot }: Measured): RouteSnapshot[] => snapshot.routes.filter(({ method }) => isHttp(method));

/** The row of all requests without a route has `*` when their methods differ. */
const methodOf = ({ method }: RouteSnapshot): string => (method === '*' ? OVERFLOW : method);

/** A figure of all routes by method: methods are few, routes may be many. */
const byMethod = (measured: Measured, valueOf: (route: RouteSnapshot) => number): Point[] =>
  summed(
    httpRoutes(measured).map((route) => ({
      value: valueOf(route),
      attributes: { 'http.request.method': methodOf(route) },
    })),
  );

const overOf = (route: RouteSnapshot, cap: SeriesCap): Point[] =>
  route.over.map(({ ms, count }) => ({
    value: count,
    attributes: { 'http.request.method': methodOf(route), 'http.route': cap.admit(route.route), le_ms: String(ms) },
  }));

/** Requests beside their histogram. */
export const metricsOfRequests: readonly Metric[] = [
  {
    name: 'http.server.active_requests',
    unit: '{request}',
    kind: 'upDownCounter',
    help: 'HTTP requests in flight.',
    attributes: ['http.request.method'],
    prometheus: { name: 'http_server_active_requests' },
    read: (measured) => byMethod(measured, (route) => route.inFlight),
  },
  {
    name: 'perf.http.aborted',
    unit: '{request}',
    kind: 'counter',
    help: 'HTTP requests whose client left before the end of the response; the duration histogram has the others.',
    attributes: ['http.request.method'],
    prometheus: { name: 'perf_http_aborted_total' },
    read: (measured) => byMethod(measured, (route) => route.aborted),
  },
  {
    name: 'perf.http.requests_over',
    unit: '{request}',
    kind: 'counter',
    help: 'Completed HTTP requests that took longer than le_ms milliseconds (option latency.overMs).',
    attributes: ['http.request.method', 'http.route', 'le_ms'],
    prometheus: { name: 'perf_http_requests_over_total' },
    read: (measured) => summed(httpRoutes(measured).flatMap((route) => overOf(route, measured.cap))),
  },
];
