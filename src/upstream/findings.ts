import { percent } from '../core/figures.js';
import type { Finding } from '../core/snapshot.js';
import type { Route } from '../request/routes.js';
import type { RouteTimes } from './request-time.js';
import type { Target } from './target.js';

/** Fewer requests are no evidence. */
const MIN_REQUESTS = 5;
/** An N+1 makes at least three calls of one URL, command or statement a request. */
const MIN_ALIKE = 3;
/** The share of the wait that one call must save: a pipeline, and calls at the same time, are one wait already. */
const MIN_SAVED = 0.2;
/** A route with a lower `@SlowMs()` is meant to be fast. */
const FAST_MS = 250;
/** A shorter wait for a connection is no finding, nor is one below a fifth of the route's time. */
const MIN_POOL_WAIT_MS = 5;
const MIN_POOL_WAIT_SHARE = 0.2;

type Times = ReadonlyMap<Route, RouteTimes>;

export const listFindings = (targets: readonly Target[], times: Times): Finding[] => [
  ...repeatedCalls(targets, times),
  ...poolWaits(targets, times),
  ...callsOfFastRoutes(targets),
];

/** N+1: routes that repeat one call to an upstream in a request. */
function* repeatedCalls(targets: readonly Target[], times: Times): Generator<Finding> {
  for (const { name, routes } of targets) {
    for (const [route, { calls, alike, waitMs, repeatedMs }] of routes) {
      // Requests without a call are part of the average.
      const { ended, durationMs } = times.get(route)!;
      if (ended < MIN_REQUESTS || alike / ended < MIN_ALIKE || repeatedMs < MIN_SAVED * waitMs) continue;
      const asks = route.name;
      const text =
        `${asks} calls ${name} ${Math.round(calls / ended)} times a request (N+1), which is ${percent(waitMs / durationMs)} of its time: ` +
        `one call for all, or a cache, would save up to ${percent(repeatedMs / durationMs)}`;
      yield { kind: 'repeated-calls', route: asks, text };
    }
  }
}

/** Routes that wait for a connection, while the queries themselves may be fast. */
function* poolWaits(targets: readonly Target[], times: Times): Generator<Finding> {
  for (const { pools, routes } of targets) {
    if (pools === null) continue;
    const { max, total } = pools.size();
    for (const [route, { requests, waitMs }] of pools.routes) {
      const { durationMs } = times.get(route)!;
      const meanMs = waitMs / requests;
      if (requests < MIN_REQUESTS || meanMs < MIN_POOL_WAIT_MS || waitMs / durationMs < MIN_POOL_WAIT_SHARE) continue;
      const asks = route.name;
      const queriesMs = (routes.get(route)?.wallMs ?? 0) / requests;
      const text = `${asks} waits ${ms(meanMs)} for one of ${max || total || 'its'} connections; its queries take ${ms(queriesMs)}`;
      yield { kind: 'pool-wait', route: asks, text };
    }
  }
}

/** Routes that are meant to be fast, and wait for an upstream. */
function* callsOfFastRoutes(targets: readonly Target[]): Generator<Finding> {
  for (const { name, routes } of targets) {
    for (const [route, { requests, wallMs }] of routes) {
      const slowMs = route.handler?.slowMs ?? Infinity;
      if (requests < MIN_REQUESTS || slowMs > FAST_MS) continue;
      const asks = route.name;
      const text = `${asks} may take ${slowMs} ms, and waits ${ms(wallMs / requests)} a request for ${name}`;
      yield { kind: 'call-on-fast-route', route: asks, text };
    }
  }
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
