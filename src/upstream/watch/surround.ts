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
    remove();
  };
}

/** The arguments with callbacks that end a call first: their first argument is an error, or none. */
export const endByCallback = (given: readonly unknown[], call: Call | null): unknown[] =>
  given.map((one) =>
    typeof one !== 'function'
      ? one
      : function (this: unknown, ...results: unknown[]): unknown {
          call?.end(results[0] !== undefined && results[0] !== null);
          return Reflect.apply(one, this, results);
        },
  );

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

/**
 * Surrounds a pool's method that lends a connection to a callback, or by a promise: ends the wait, and runs the callback in its
 * caller's request, since a pool lends in the context of the request that gives the connection back.
 */
export const surroundLending = (
  pool: object,
  name: string,
  beginWait: () => Call | null,
  onLent: (connection: unknown) => void = () => {},
): (() => void) =>
  surround(pool, name, (given, proceed) => {
    const wait = beginWait();
    const stored = requestContext.getStore();
    const lend = (callback: Function) =>
      function (this: unknown, ...results: unknown[]): unknown {
        wait?.end(false);
        onLent(results[1]);
        return requestContext.run(stored!, () => Reflect.apply(callback, this, results));
      };
    return settling(() => proceed(given.map((one) => (typeof one === 'function' ? lend(one) : one))), wait);
  });
