import { isThenable } from '../core/thenable.js';
import type { Upstream } from './upstream.js';
import { settling } from './watch/surround.js';
import { endOf } from './watch/watched-call.js';

/** Runs `work` as a call to `target`, until what it returns has settled. Passes on its value and its error. */
export function timed<T>(upstream: Upstream, target: string, work: () => T): T {
  const state = upstream.caller();
  if (state === 'foreign') return work();
  // A null text: the call repeats no other.
  const end = endOf(upstream, upstream.beginFor(state, upstream.targets.named(target, 'other'), null));
  const result = settling(work, end) as T;
  if (!isThenable(result)) end(false);
  return result;
}
