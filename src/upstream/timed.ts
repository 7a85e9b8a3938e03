import { isThenable } from '../core/thenable.js';
import type { Upstream } from './upstream.js';
import { endOf, untilEnd } from './watch/watched-call.js';

/** Runs `work` as a call to `target`, until what it returns has settled. Passes on its value and its error. */
export function timed<T>(upstream: Upstream, target: string, work: () => T): T {
  const state = upstream.caller();
  if (state === 'foreign') return work();
  // Nobody knows which of them are alike.
  const call = upstream.beginFor(state, upstream.targets.named(target, 'other'), null);
  const end = endOf(upstream, call);
  let result: T;
  try {
    result = work();
  } catch (error) {
    end(true);
    throw error;
  }
  if (!isThenable(result)) {
    end(false);
    return result;
  }
  // A query that runs when somebody asks for it is asked once, here; a rejection that nobody handles is still told as one.
  return untilEnd(result, end) as T;
}
