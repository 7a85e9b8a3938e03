import { percent } from '../core/figures.js';
import type { Finding } from '../core/snapshot.js';
import { readTimes } from './request-time.js';
import type { Target } from './target.js';

/** Fewer requests are no evidence. */
const MIN_REQUESTS = 5;
/** An N+1 repeats one URL, command or statement at least three times a request. */
const MIN_REPEATS = 3;
/** A shorter wait for a connection is no finding, nor is one below a fifth of the route's time. */
const MIN_POOL_WAIT_MS = 5;
const MIN_POOL_WAIT_SHARE = 0.2;

export const listFindings = (targets: readonly Target[]): Finding[] => [
  ...repeatedCalls(targets),
  ...poolWaits(targets),
];

/** N+1: routes that repeat one call to an upstream in a request. */
function* repeatedCalls(targets: readonly Target[]): Generator<Finding> {
  for (const { name, routes } of targets) {
    for (const [route, { calls, repeats, waitMs }] of routes) {
      // Requests without a call are part of the average.
      const { ended, durationMs } = readTimes(route)!;
      if (ended < MIN_REQUESTS || repeats / ended < MIN_REPEATS) continue;
      const asks = route.name;
      const text =
        `${asks} calls ${name} ${Math.round(calls / ended)} times a request (N+1), which is ${percent(waitMs / durationMs)} of its time: ` +
        'make one call for all, or cache the answers';
      yield { kind: 'repeated-calls', route: asks, text };
    }
  }
}

/** Routes that wait for a connection, while the queries themselves may be fast. The longest wait in all comes first. */
function poolWaits(targets: readonly Target[]): Finding[] {
  const found: { readonly finding: Finding; readonly waitMs: number }[] = [];
  for (const { pools, routes } of targets) {
    if (pools === null) continue;
    const { max, total } = pools.size();
    for (const [route, { waitMs, poolWaitMs }] of routes) {
      const { ended, durationMs } = readTimes(route)!;
      const meanMs = poolWaitMs / ended;
      if (ended < MIN_REQUESTS || meanMs < MIN_POOL_WAIT_MS || poolWaitMs / durationMs < MIN_POOL_WAIT_SHARE) continue;
      const asks = route.name;
      const text = `${asks} waits ${ms(meanMs)} for one of ${max || total || 'its'} connections; its queries take ${ms(waitMs / ended)}`;
      found.push({ finding: { kind: 'pool-wait', route: asks, text }, waitMs: poolWaitMs });
    }
  }
  return found.toSorted((a, b) => b.waitMs - a.waitMs).map(({ finding }) => finding);
}

const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
