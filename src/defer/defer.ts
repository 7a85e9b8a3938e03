import { requestContext } from '../core/request-state.js';
import { off } from './defer.errors.js';
import { DEFERRER, runningDeferrers, type Deferrer } from './deferrer.js';
import type { DeferInfo, DeferWorkOptions } from './deferred-work.js';

/**
 * {@link Deferrer.defer} without injection. Never runs early: where it cannot be told which request calls, the work waits for
 * all that might be the one, and from the next request on it can be told.
 * @throws PERF_ERR_CONTEXT_OFF with `context: false`, and what `deferrer.defer()` throws
 */
export function defer(task: (info: DeferInfo) => unknown, options?: Omit<DeferWorkOptions, 'durable'>): void {
  deferrerOfCaller().defer(task, options);
}

function deferrerOfCaller(): Deferrer {
  const state = requestContext.getStore();
  const running = [...runningDeferrers];
  const deferrer =
    state === undefined
      ? (running.find((candidate) => candidate.current() !== null) ??
        // Its requests are in flight, so its work waits for them.
        running.toSorted((a, b) => b.inFlight - a.inFlight)[0])
      : DEFERRER.get(state.owner);
  if (deferrer === null || deferrer === undefined) throw off('defer()');
  return deferrer;
}
