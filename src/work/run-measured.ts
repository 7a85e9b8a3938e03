import { Observable, type Subscriber } from 'rxjs';
import { isThenable } from '../core/thenable.js';
import { requestContext, type RequestState } from '../request/request-state.js';
import type { Works } from './works.js';

/**
 * Runs a call in its scope until what it returns has settled. Passes on its value and its error. Nest awaits what it calls (`byNest`); the
 * application may chain what it has called itself: a query builder or a subject is returned as it is, and ends the scope.
 */
export function runMeasured(works: Works, state: RequestState, proceed: () => unknown, byNest: boolean): unknown {
  let result: unknown;
  try {
    result = requestContext.run(state, proceed);
  } catch (error) {
    works.end(state, true);
    throw error;
  }
  const end = (failed: boolean): void => works.end(state, failed);
  if (isThenable(result) && (byNest || result instanceof Promise)) return untilSettled(state, result, end);
  if (result instanceof Observable && (byNest || Object.getPrototypeOf(result) === Observable.prototype))
    return untilCompleted(works, state, result, byNest);
  works.end(state, false);
  return result;
}

/** A rejection that nobody handles is still reported as one: what is returned rejects as well. */
async function untilSettled(
  state: RequestState,
  result: PromiseLike<unknown>,
  end: (failed: boolean) => void,
): Promise<unknown> {
  let failed = true;
  // A query that runs when it is awaited runs in its scope, on every Node.
  const start = (): Promise<unknown> => new Promise((resolve, reject) => void result.then(resolve, reject));
  try {
    const value = await (result instanceof Promise ? result : requestContext.run(state, start));
    failed = false;
    return value;
  } finally {
    end(failed);
  }
}

/** Nest subscribes at once; what nobody has subscribed to by the next turn is over. */
function untilCompleted(
  works: Works,
  state: RequestState,
  result: Observable<unknown>,
  byNest: boolean,
): Observable<unknown> {
  let isHeard = false;
  setImmediate(() => {
    if (!isHeard) works.end(state, false);
  });
  return new Observable((subscriber) => {
    isHeard = true;
    return subscribeInScope(works, state, result, subscriber, byNest);
  });
}

/**
 * Subscribes to what a call emits, in its scope, which ends with it. Nest awaits a promise that is emitted (`byNest`), as by an
 * interceptor with `of(inTransaction(…))`: the scope ends once it has settled.
 */
export function subscribeInScope(
  works: Works,
  state: RequestState,
  source: Observable<unknown>,
  subscriber: Subscriber<unknown>,
  byNest: boolean,
): () => void {
  /** Counts the subscription and each promise. */
  let running = 1;
  let anyFailed = false;
  let completed = false;
  const endOne = (failed: boolean): void => {
    anyFailed ||= failed;
    running -= 1;
    if (running === 0) works.end(state, anyFailed);
  };
  const follow = (value: PromiseLike<unknown>): Promise<unknown> => {
    running += 1;
    return untilSettled(state, value, endOne);
  };
  const subscription = requestContext.run(state, () =>
    source.subscribe({
      next: (value) => subscriber.next(byNest && isThenable(value) ? follow(value) : value),
      error: (error: unknown) => {
        works.end(state, true);
        subscriber.error(error);
      },
      complete: () => {
        completed = true;
        endOne(false);
        subscriber.complete();
      },
    }),
  );
  return () => {
    subscription.unsubscribe();
    if (!completed) works.end(state, false, true);
  };
}
