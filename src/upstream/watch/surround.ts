import { requestContext } from '../../request/request-state.js';
import { putOn } from '../../core/stand-in.js';
import { isThenable } from '../../core/thenable.js';
import type { Call } from '../request-time.js';

export type Callback = (...results: unknown[]) => unknown;
type Proceed = (given: readonly unknown[]) => unknown;

/**
 * Runs `around` for each call of one method of one object. Returns what removes it; where others have wrapped the method since
 * then, calls pass through.
 */
export function surround(
  client: object,
  name: string,
  around: (given: readonly unknown[], proceed: Proceed) => unknown,
): () => void {
  const method = (client as Record<string, Callback>)[name]!;
  let removed = false;
  const stands = function (this: unknown, ...given: unknown[]): unknown {
    const proceed: Proceed = (changed) => Reflect.apply(method, this, changed);
    return removed ? proceed(given) : around(given, proceed);
  };
  const remove = putOn(client, name, stands);
  return () => {
    removed = true;
    remove?.();
  };
}

/** The end of a call. */
export type Ending = Pick<Call, 'end'>;

/** A callback that ends a call first; its first argument is an error, or none. */
export const endingCallback = (callback: Callback, call: Ending | null): Callback =>
  function (this: unknown, ...results) {
    call?.end(results[0] !== undefined && results[0] !== null);
    return Reflect.apply(callback, this, results);
  };

/** Passes on the result of a call, and ends the call when it settles; a failure at once ends it as well. */
export function settling<T>(proceed: () => T, call: Call | null): T {
  let result: T;
  try {
    result = proceed();
  } catch (error) {
    call?.end(true);
    throw error;
  }
  if (!isThenable(result)) return result;
  return result.then(
    (value) => {
      call?.end(false);
      return value;
    },
    (error) => {
      call?.end(true);
      throw error;
    },
  ) as T;
}

export interface Lending {
  /** Gets the connection of a callback. */
  readonly onLent?: (connection: unknown) => void;
  /** Reads the callback that waits since the last call, in a pool that may pass it to the method again. */
  readonly readQueued?: () => unknown;
}

/**
 * Surrounds a pool's method that lends a connection to a callback, or by a promise: ends the wait, and runs the callback in its
 * caller's request.
 */
export function surroundLending(
  pool: object,
  name: string,
  beginWait: () => Call | null,
  { onLent, readQueued }: Lending = {},
): () => void {
  const queued = new WeakSet<object>();
  return surround(pool, name, (given, proceed) => {
    // A connection has died, and its pool makes another one for a callback in its queue: that wait goes on.
    if (given.some((one) => queued.has(one as object))) return proceed(given);
    const wait = beginWait();
    const stored = requestContext.getStore();
    // A pool lends in the context of the request that gives the connection back.
    const lend = (callback: Callback): Callback =>
      function (this: unknown, ...results) {
        wait?.end(false);
        onLent?.(results[1]);
        return requestContext.run(stored!, () => Reflect.apply(callback, this, results));
      };
    const changed = given.map((one) => (typeof one === 'function' ? lend(one as Callback) : one));
    const result = settling(() => proceed(changed), wait);
    const callback = readQueued?.();
    if (typeof callback === 'function') queued.add(callback);
    return result;
  });
}
