import { ServiceUnavailableException } from '@nestjs/common';
import {
  catchError,
  concat,
  defer as onSubscription,
  finalize,
  ignoreElements,
  isObservable,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { PerfRequest } from '../../core/perf-request.js';
import type { RequestState } from '../../request/request-state.js';
import { isThenable } from '../../core/thenable.js';
import { PerfError } from '../../core/perf.error.js';
import { namesOf, unstarted } from '../counters.js';
import type { Arming, ClassWork } from '../arming.js';
import type { DeferEngine } from '../defer-engine.js';
import type { DeferContext, DeferFunction, DeferWhen } from '../deferred-work.js';
import type { Armed } from '../armed.js';
import { type RequestWork, runsAfter } from '../request-work.js';
import type { WorkOptions } from '../work-options.js';
import type { AnyWork } from './work-providers.js';

export type PlannedWork = ClassWork | (WorkOptions & { readonly name: string; readonly run: DeferFunction });

/** A promise for request-scoped work, which must be made first. */
type MaybeArmed = Armed | null | Promise<Armed | null>;
/** An error: there is no room for it, and the route answers 503. */
type Ready = Armed | PerfError | null;

interface HandlerEnd {
  readonly works: readonly PlannedWork[];
  readonly origin: RequestState;
  /** Work that its request has armed. */
  readonly requestWork: RequestWork;
  /** The number of works that the request had armed when the handler began. */
  readonly place: number;
  result: unknown;
  error: unknown;
  success: boolean;
}

const GIVEN_UP = 'its observable was given up';

export class HandlerWorks {
  constructor(
    private readonly engine: DeferEngine,
    private readonly workOf: (state: RequestState) => RequestWork,
  ) {}

  /**
   * Runs a handler, and arms its works at its end. `streams`: it returns server-sent events, which have no result. What returns no
   * promise still returns none, for a handler that another one calls; except where its works must be made or be on disk first.
   */
  run(works: readonly PlannedWork[], streams: boolean, origin: RequestState, proceed: () => unknown): unknown {
    const requestWork = this.workOf(origin);
    // An interceptor tries the handler again: what the failed call has armed is not wanted any more.
    requestWork.retract(works);
    const place = requestWork.size;
    const end = { works, origin, requestWork, place, result: undefined, error: null, success: false };
    const ended = this.engine.handlerStarted();
    try {
      const value = this.runHandler(end, streams, proceed);
      if (!isThenable(value)) {
        ended();
        return value;
      }
      // `instanceof` fails here: where the global Promise is zone.js's, an async function returns another one.
      return value.then(
        (result) => {
          ended();
          return result;
        },
        (error: unknown) => {
          ended();
          throw error;
        },
      );
    } catch (error) {
      ended();
      throw error;
    }
  }

  private runHandler(end: HandlerEnd, streams: boolean, proceed: () => unknown): unknown {
    let value: unknown;
    try {
      value = proceed();
    } catch (error) {
      return after(this.failed(end, error), () => {
        throw error;
      });
    }
    return isThenable(value) ? this.afterPromise(end, streams, value) : this.afterValue(end, streams, value);
  }

  private async afterPromise(end: HandlerEnd, streams: boolean, pending: unknown): Promise<unknown> {
    let value: unknown;
    try {
      // A lazy query runs when it is awaited: once, here.
      value = await pending;
    } catch (error) {
      await this.failed(end, error);
      throw error;
    }
    return this.afterValue(end, streams, value);
  }

  private afterValue(end: HandlerEnd, streams: boolean, value: unknown): unknown {
    if (isObservable(value) && !streams) return this.afterStream(end, value);
    return after(this.succeeded(end, streams ? undefined : value), () => value);
  }

  /** An observable is one value: its last, once it has completed, as it is for Nest. */
  private afterStream(end: HandlerEnd, values: Observable<unknown>): Observable<unknown> {
    return onSubscription(() => {
      const handled = this.engine.handlerStarted();
      let [last, hasValue, hasEnded] = [undefined as unknown, false, false];
      const arm = (done: () => Promise<void> | undefined): Observable<never> => {
        hasEnded = true;
        return onSubscription(async () => done()).pipe(ignoreElements());
      };
      const seen = values.pipe(
        tap((value) => ([last, hasValue] = [value, true])),
        catchError((error: unknown) =>
          concat(
            arm(() => this.failed(end, error)),
            throwError(() => error),
          ),
        ),
      );
      const completed = onSubscription(() => arm(() => this.succeeded(end, last)));
      // `first()` has what it wants; `timeout()` has given up.
      const endEarly = async (): Promise<void> => {
        if (!hasEnded) await (hasValue ? this.succeeded(end, last) : this.failed(end, new Error(GIVEN_UP)));
      };
      return concat(seen, completed).pipe(finalize(() => void endEarly().then(handled, handled)));
    });
  }

  /** @throws 503 with `overflow: 'reject'`, where some of it finds no room, on disk or in memory */
  private succeeded(end: HandlerEnd, result: unknown): Promise<void> | undefined {
    return this.armAll(Object.assign(end, { result, success: true }));
  }

  private failed(end: HandlerEnd, error: unknown): Promise<void> | undefined {
    return this.armAll(Object.assign(end, { error }));
  }

  /** Resolves when all of it is armed: what must be on disk is. Undefined: it is already. */
  private armAll(end: HandlerEnd): Promise<void> | undefined {
    const armings = end.works.map((work) => this.armFor(work, end));
    if (armings.some(isThenable)) return this.armInTurn(end, armings);
    return this.place(end, armings as Ready[]);
  }

  /** One after the other, so that their order stays. */
  private async armInTurn(end: HandlerEnd, armings: readonly (Ready | Promise<Ready>)[]): Promise<void> {
    const ready: Ready[] = [];
    for (const armed of armings) ready.push(await armed);
    await this.place(end, ready);
  }

  private place(end: HandlerEnd, armings: readonly Ready[]): Promise<void> | undefined {
    const { works, requestWork, place, success } = end;
    for (const armed of armings) {
      if (armed !== null && !isRefusal(armed)) requestWork.arm(armed, { works, place, retractable: !success });
    }
    const refusal = armings.find(isRefusal) ?? null;
    requestWork.handlerEnded(success && refusal === null);
    if (refusal !== null) throw noRoom(refusal);
    return requestWork.written?.then((unwritten) => {
      if (unwritten !== null && canAnswer(end)) throw noRoom(unwritten);
    });
  }

  /**
   * Work that the handler's end speaks for is prepared now. The rest waits for the final status, which exception filters
   * and interceptors may still turn, and is prepared only should it come to that.
   */
  private armFor(work: PlannedWork, end: HandlerEnd): Ready | Promise<Ready> {
    const when = work.when ?? 'success';
    if (runsAfter(when, end.success)) return this.armNow(work, when, end, canAnswer(end));
    return {
      name: work.name,
      when,
      commit: (status) => {
        const armed = this.armNow(work, when, end, false);
        const commit = (late: Ready): void => (isRefusal(late) ? undefined : late?.commit(status));
        if (!isThenable(armed)) return commit(armed);
        const { counters } = this.engine;
        counters.expect(1);
        void armed.then((late) => {
          commit(late);
          counters.expect(-1);
        });
      },
      discard: () => {},
    };
  }

  /** Never throws: whatever goes wrong while preparing is counted and reported, and the response goes on; unless it `mayRefuse`. */
  private armNow(work: PlannedWork, when: DeferWhen, end: HandlerEnd, mayRefuse: boolean): Ready | Promise<Ready> {
    const { counters } = this.engine;
    const failed = (error: unknown): PerfError | null => {
      const item = unstarted(work.name, namesOf(end.origin), work.durable);
      if (!isRefusal(error)) counters.fail(null, item, error);
      else if (mayRefuse) return error;
      else counters.drop(null, item, 'there is no room for it (defer.maxPending)');
      return null;
    };
    try {
      const armed = this.arm(work, when, end);
      return isThenable(armed) ? armed.catch(failed) : armed;
    } catch (error) {
      return failed(error);
    }
  }

  private arm(work: PlannedWork, when: DeferWhen, end: HandlerEnd): MaybeArmed {
    const { origin, requestWork } = end;
    const arming: Arming = { when, origin, sequence: requestWork };
    if ('run' in work) {
      return this.engine.armTask(work, ({ told }) => work.run(contextOf(end, told.status)), arming);
    }
    const armWith = (instance: AnyWork): Armed | null => {
      const data: unknown = instance.prepare === undefined ? end.result : instance.prepare(contextOf(end));
      if (isThenable(data)) {
        Promise.resolve(data).catch(() => {});
        throw new TypeError('prepare() returned a promise: pick plain data there, and do the waiting in run()');
      }
      if (instance.prepare !== undefined && data === undefined) return null;
      return this.engine.armClass(work, instance, data, arming);
    };
    const provided = work.provide(origin.frameworkRequest);
    return isThenable(provided) ? provided.then(armWith) : armWith(provided);
  }
}

const isRefusal = (error: unknown): error is PerfError =>
  error instanceof PerfError && error.code === 'PERF_ERR_DEFER_FULL';

const noRoom = (cause: PerfError): Error =>
  new ServiceUnavailableException('Too much work is waiting. Try again later.', { cause });

/** The handler has succeeded, and has not answered by itself. */
const canAnswer = ({ success, origin }: HandlerEnd): boolean => success && origin.response?.headersSent !== true;

/** At once where there is nothing to wait for. */
function after<T>(done: Promise<void> | undefined, proceed: () => T): T | Promise<T> {
  return done === undefined ? proceed() : done.then(proceed);
}

/** The handler's end as work reads it: a plain object without getters, which applications spread and log. */
function contextOf({ result, error, origin }: HandlerEnd, status: number | null = null): DeferContext {
  return { request: origin.frameworkRequest as PerfRequest, result, error, status, requestId: origin.id };
}
