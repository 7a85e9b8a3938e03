import { percent } from '../core/figures.js';
import { routeName, type Route } from '../request/routes.js';
import type { Finding } from '../core/snapshot.js';
import type { RouteTimes } from './route-times.js';
import type { Target } from './target.js';

/** Fewer requests say too little. */
const MIN_REQUESTS = 5;
/** So many calls of one URL or command in a request could mostly be one. */
const MIN_ALIKE = 3;
/** Of the wait: a pipeline, or calls at the same time, are one already. */
const MIN_SAVED = 0.2;
/** A route whose `@SlowMs()` says so is meant to be fast. */
const FAST_MS = 250;

/** What calls tell of an application, in words. */
export const findingsOf = (targets: readonly Target[], times: ReadonlyMap<Route, RouteTimes>): Finding[] => [
  ...repeatedCalls(targets, times),
  ...callsOfFastRoutes(targets),
  ...slowerTargets(targets),
];

/** Routes that ask one upstream for the same again and again. */
function* repeatedCalls(targets: readonly Target[], times: ReadonlyMap<Route, RouteTimes>): Generator<Finding> {
  for (const { name, routes } of targets) {
    for (const [route, { calls, alike, waitMs, repeatedMs }] of routes) {
      // All of its requests: those that asked for nothing are its average, too.
      const { ended, durationMs } = times.get(route)!;
      if (ended < MIN_REQUESTS || alike / ended < MIN_ALIKE || repeatedMs < MIN_SAVED * waitMs) continue;
      const asks = routeName(route);
      const text =
        `${asks} calls ${name} ${Math.round(calls / ended)} times a request, which is ${percent(waitMs / durationMs)} of its time: ` +
        `one call for all, or a cache, would save up to ${percent(repeatedMs / durationMs)}`;
      yield { kind: 'repeated-calls', route: asks, text };
    }
  }
}

/** Routes that are meant to be fast, and wait for somebody else. */
function* callsOfFastRoutes(targets: readonly Target[]): Generator<Finding> {
  for (const { name, routes } of targets) {
    for (const [route, { requests, wallMs }] of routes) {
      const slowMs = route.handler?.slowMs ?? Infinity;
      if (requests < MIN_REQUESTS || slowMs > FAST_MS) continue;
      const asks = routeName(route);
      const text = `${asks} is to answer within ${slowMs} ms, and calls ${name} for ${ms(wallMs / requests)} a request`;
      yield { kind: 'call-on-fast-route', route: asks, text };
    }
  }
}

/** Upstreams whose calls take longer than they did. */
function* slowerTargets(targets: readonly Target[]): Generator<Finding> {
  for (const { name, trend } of targets) {
    const slowdown = trend.slowdown();
    if (slowdown === null) continue;
    const { beforeMs, nowMs } = slowdown;
    const text = `calls to ${name} took ${ms(nowMs)} in the last minute, and ${ms(beforeMs)} before`;
    yield { kind: 'slower-upstream', route: null, text };
  }
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
