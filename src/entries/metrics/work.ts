import type { RouteSnapshot } from '../../core/snapshot.js';
import { single, type Metric, type Point } from './metric.js';

/** Sums a figure of all routes by method: methods are few, routes may be many. */
function byMethod(routes: readonly RouteSnapshot[], valueOf: (route: RouteSnapshot) => number): Point[] {
  const sums = new Map<string, number>();
  for (const route of routes) sums.set(route.method, (sums.get(route.method) ?? 0) + valueOf(route));
  return Array.from(sums, ([method, value]) => ({ value, attributes: { 'http.request.method': method } }));
}

/** Requests beside their histogram, deferred work and compression. */
export const metricsOfWork: readonly Metric[] = [
  {
    name: 'http.server.active_requests',
    unit: '{request}',
    kind: 'upDownCounter',
    help: 'HTTP requests in flight.',
    prometheus: { name: 'http_server_active_requests' },
    read: ({ snapshot }) => byMethod(snapshot.routes, (route) => route.inFlight),
  },
  {
    name: 'perf.http.aborted',
    unit: '{request}',
    kind: 'counter',
    help: 'HTTP requests whose client left before the end of the response; the duration histogram has the others.',
    prometheus: { name: 'perf_http_aborted_total' },
    read: ({ snapshot }) => byMethod(snapshot.routes, (route) => route.aborted),
  },
  {
    name: 'perf.deferred',
    unit: '{task}',
    kind: 'counter',
    help: 'Deferred tasks that have ended, by outcome.',
    prometheus: { name: 'perf_deferred_total' },
    read: ({ snapshot: { defer } }) =>
      defer === null
        ? []
        : [
            { value: defer.completed, attributes: { outcome: 'completed' } },
            { value: defer.failed, attributes: { outcome: 'failed' } },
            { value: defer.dropped, attributes: { outcome: 'dropped' } },
          ],
  },
  {
    name: 'perf.deferred.pending',
    unit: '{task}',
    kind: 'upDownCounter',
    help: 'Deferred tasks that wait to run.',
    prometheus: { name: 'perf_deferred_pending' },
    read: ({ snapshot }) => single(snapshot.defer?.pending),
  },
  {
    name: 'perf.compression',
    unit: 'By',
    kind: 'counter',
    help: 'Bytes of responses before (in) and after (out) compression.',
    prometheus: { name: 'perf_compression_bytes_total' },
    read: ({ snapshot: { compression } }) =>
      compression === null
        ? []
        : [
            { value: compression.bytesIn, attributes: { direction: 'in' } },
            { value: compression.bytesOut, attributes: { direction: 'out' } },
          ],
  },
];
