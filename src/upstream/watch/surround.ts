import { requestContext } from '../../request/request-state.js';
import { putOn } from '../../core/stand-in.js';
import { isThenable } from '../../core/thenable.js';
import type { Call } from '../request-time.js';

export type Callback = (...results: unknown[]) => unknown;
type Proceed = (given: readonly unknown[]) => unknown;

/**
 * Runs `around` for each call of one method of one object. Returns its removal; where another wrapper stands above it by
 * then, it stays and calls pass through.
 */
export function surround(
  client: object,
  name: string,
  around: (given: readonly unknown[], proceed: Proceed) => unknown,
): () => void {
  const method = (client as Record<string, Callback>)[name]!;
  let removed = false;
  const wrapper = function (this: unknown, ...given: unknown[]): unknown {
    const proceed: Proceed = (changed) => Reflect.apply(method, this, changed);
    return removed ? proceed(given) : around(given, proceed);
  };
  const remove = putOn(client, name, wrapper);
  return () => {
    removed = true;
    remove();
  };
}

/** Wraps the callbacks among arguments, so that they end the call first. Their own first argument is an error, or none. */
export const endByCallback = (given: readonly unknown[], call: Call | null): unknown[] =>
  given.map((one) =>
    typeof one !== 'function'
      ? one
      : function (this: unknown, ...results: unknown[]): unknown {
          call?.end(results[0] !== undefined && results[0] !== null);
          return Reflect.apply(one, this, results);
        },
  );

/** Runs `proceed`, and ends the call when it throws or its promise settles. A plain result ends nothing: a callback may. */
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
 * Wraps the method by which a pool lends connections: measures the wait, and runs the callback in its caller's request. A pool
 * calls it in the context of the request that gives the connection back.
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
