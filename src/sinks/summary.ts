import { describeResources } from '../core/resource-text.js';
import type { PerfSnapshot, RouteSnapshot } from '../core/snapshot.js';

const SHOWN_ROUTES = 3;

/** One line for people: how much, how slow, where. */
export function summaryText(snapshot: PerfSnapshot, freshRequests: number): string {
  const worst = slowest(snapshot).map(
    (route) => `${route.method} ${route.route || '(no route)'} p95 ${route.durationMs.p95.toFixed(0)} ms`,
  );
  const errors = snapshot.routes.reduce((sum, route) => sum + route.errors, 0);
  const loop = snapshot.eventLoop;
  const parts = [
    `${counted(freshRequests, 'request')} in the last minute, ${counted(errors, 'error')} since start`,
    `slowest: ${worst.join(', ')}`,
    loop === null
      ? ''
      : `event loop ${(loop.utilization * 100).toFixed(0)} % busy, p99 delay ${loop.delayMs.p99.toFixed(0)} ms`,
    snapshot.resources === null ? '' : describeResources(snapshot.resources),
  ];
  return parts.filter((part) => part !== '').join('; ');
}

/** The same for JSON loggers. */
export function summaryFields(snapshot: PerfSnapshot, freshRequests: number): object {
  const { eventLoop, resources } = snapshot;
  const routes = slowest(snapshot).map(({ method, route, count, errors, durationMs }) => ({
    method,
    route,
    count,
    errors,
    p95Ms: durationMs.p95,
  }));
  return { event: 'summary', requests: freshRequests, routes, eventLoop, resources };
}

function slowest(snapshot: PerfSnapshot): RouteSnapshot[] {
  return [...snapshot.routes].sort((a, b) => b.durationMs.p95 - a.durationMs.p95).slice(0, SHOWN_ROUTES);
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;
