import type { Upstream } from './upstream.js';

interface Thenable {
  then(fulfilled: (value: unknown) => unknown, rejected: (reason: unknown) => unknown): unknown;
}

/** Runs `work` as a call to `target`, until what it returns has settled. Passes on what it returns or throws. */
export function timed<T>(upstream: Upstream, target: string, work: () => T): T {
  const state = upstream.caller();
  if (state === 'foreign') return work();
  const call = upstream.beginFor(state, upstream.targets.named(target, 'other'), '', false);
  const end = (failed: boolean): void => upstream.end(call, failed);
  let result: T;
  try {
    result = work();
  } catch (error) {
    end(true);
    throw error;
  }
  if (result instanceof Promise) {
    result.then(
      () => end(false),
      () => end(true),
    );
    return result;
  }
  if (!isThenable(result)) {
    end(false);
    return result;
  }
  // A query that runs when somebody asks for it: asked once, here.
  return result.then(
    (value) => {
      end(false);
      return value;
    },
    (reason) => {
      end(true);
      throw reason;
    },
  ) as T;
}

const isThenable = (value: unknown): value is Thenable =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
