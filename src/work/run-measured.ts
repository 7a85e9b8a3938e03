import { Observable } from 'rxjs';
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
  if (isThenable(result) && (byNest || result instanceof Promise)) return untilSettled(works, state, result);
  if (result instanceof Observable && (byNest || Object.getPrototypeOf(result) === Observable.prototype))
    return untilCompleted(works, state, result);
  works.end(state, false);
  return result;
}

/** A rejection that nobody handles is still reported as one: what is returned rejects as well. */
async function untilSettled(works: Works, state: RequestState, result: PromiseLike<unknown>): Promise<unknown> {
  let failed = true;
  // A query that runs when it is awaited runs in its scope, on every Node.
  const start = (): Promise<unknown> => new Promise((resolve, reject) => void result.then(resolve, reject));
  try {
    const value = await (result instanceof Promise ? result : requestContext.run(state, start));
    failed = false;
    return value;
  } finally {
    works.end(state, failed);
  }
}

/** Nest subscribes at once; what nobody has subscribed to by the next turn is over. */
function untilCompleted(works: Works, state: RequestState, result: Observable<unknown>): Observable<unknown> {
  let isHeard = false;
  setImmediate(() => {
    if (!isHeard) works.end(state, false);
  });
  return new Observable((subscriber) => {
    isHeard = true;
    const subscription = requestContext.run(state, () =>
      result.subscribe({
        next: (value) => subscriber.next(value),
        error: (error: unknown) => {
          works.end(state, true);
          subscriber.error(error);
        },
        complete: () => {
          works.end(state, false);
          subscriber.complete();
        },
      }),
    );
    return () => {
      subscription.unsubscribe();
      works.end(state, false, true);
    };
  });
}
