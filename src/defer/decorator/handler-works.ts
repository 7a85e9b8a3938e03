import { ServiceUnavailableException } from '@nestjs/common';
import {
  catchError,
  concat,
  defer as onSubscription,
  finalize,
  from,
  ignoreElements,
  isObservable,
  tap,
  throwError,
  type Observable,
} from 'rxjs';
import type { PerfRequest } from '../../core/perf-request.js';
import type { RequestState } from '../../request/request-state.js';
import { isThenable } from '../../core/thenable.js';
import type { Capacity } from '../capacity.js';
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

/** By work, the capacity taken before the handler started; null where a disk takes it. Empty without `overflow: 'reject'`. */
type Reservations = ReadonlyMap<PlannedWork, Capacity | null>;
const NOTHING: Reservations = new Map();

interface HandlerEnd {
  readonly works: readonly PlannedWork[];
  readonly origin: RequestState;
  readonly reserved: Reservations;
  /** What its request has armed. */
  readonly requestWork: RequestWork;
  /** How much that was when the handler began. */
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
    const reserved = this.reserve(works);
    const place = requestWork.size;
    const end = { works, origin, reserved, requestWork, place, result: undefined, error: null, success: false };
    const ended = this.engine.handlerStarted();
    try {
      const value = this.runHandler(end, streams, proceed);
      if (!isThenable(value)) {
        ended();
        return value;
      }
      // Not by `instanceof`: where the global Promise is zone.js's, an async function returns another one.
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

  /** Its last value is the handler's result, as it is for Nest. Whoever listens sees each value when it comes. */
  private afterStream(end: HandlerEnd, values: Observable<unknown>): Observable<unknown> {
    let heard = false;
    end.requestWork.arm(
      this.unheard(end, () => heard),
      { works: end.works, place: end.place, retractable: true },
    );
    // Nest does not listen for a client that has gone already (older 11s do), and ends no response.
    setImmediate(() => heard || end.requestWork.handlerEnded(false));
    return onSubscription(() => {
      heard = true;
      const handled = this.engine.handlerStarted();
      let [last, hasValue]: [unknown, boolean] = [undefined, false];
      let ended: Promise<void> | null = null;
      const succeeded = async (): Promise<void> => this.succeeded(end, last);
      const failed = async (error: unknown): Promise<void> => this.failed(end, error);
      const armed = (done: Promise<void>): Observable<never> => {
        ended = done;
        return from(done).pipe(ignoreElements());
      };
      const seen = values.pipe(
        tap((value) => ([last, hasValue] = [value, true])),
        catchError((error: unknown) =>
          concat(
            armed(failed(error)),
            throwError(() => error),
          ),
        ),
      );
      const completed = onSubscription(() => armed(succeeded()));
      // `first()` has what it wants; `timeout()` has given up.
      const given = (): Promise<void> => (hasValue ? succeeded() : failed(new Error(GIVEN_UP)));
      return concat(seen, completed).pipe(finalize(() => void (ended ?? given()).then(handled, handled)));
    });
  }

  /** An observable that comes when its interceptor has given up already: nobody ever listens to it. */
  private unheard(end: HandlerEnd, heard: () => boolean): Armed {
    const { counters } = this.engine;
    return {
      when: 'always',
      commit: () => {
        if (heard()) return;
        counters.expect(1);
        // Where the request was decided before, Nest may be about to listen.
        setImmediate(() => {
          if (!heard()) void this.failed(end, new Error(GIVEN_UP));
          counters.expect(-1);
        });
      },
      discard: () => {
        if (!heard()) for (const work of end.works) this.giveBack(work, end);
      },
    };
  }

  /** With `overflow: 'reject'`, takes capacity for all the handler's work before it starts, or answers 503. */
  private reserve(works: readonly PlannedWork[]): Reservations {
    if (this.engine.options.overflow !== 'reject') return NOTHING;
    const taken = new Map<PlannedWork, Capacity | null>();
    for (const work of works) {
      const capacity = this.engine.capacityOf(work);
      if (capacity?.take() === false) {
        for (const other of taken.values()) other?.release();
        const cause = capacity.deferFullError(work.name);
        throw new ServiceUnavailableException('Too much work is waiting. Try again later.', { cause });
      }
      taken.set(work, capacity);
    }
    return taken;
  }

  private succeeded = (end: HandlerEnd, result: unknown): Promise<void> | undefined =>
    this.armAll(Object.assign(end, { result, success: true }));

  private failed = (end: HandlerEnd, error: unknown): Promise<void> | undefined =>
    this.armAll(Object.assign(end, { error }));

  /** Resolves when all of it is armed: what must be on disk is. Undefined: it is already. */
  private armAll(end: HandlerEnd): Promise<void> | undefined {
    const armings = end.works.map((work) => this.armFor(work, end));
    if (armings.some(isThenable)) return this.armInTurn(end, armings);
    return this.place(end, armings as (Armed | null)[]);
  }

  /** One after the other, so that their order stays. */
  private async armInTurn(end: HandlerEnd, armings: readonly MaybeArmed[]): Promise<void> {
    const ready: (Armed | null)[] = [];
    for (const armed of armings) ready.push(await armed);
    await this.place(end, ready);
  }

  private place(end: HandlerEnd, armings: readonly (Armed | null)[]): Promise<void> | undefined {
    const { works, requestWork, place, success } = end;
    for (const armed of armings) {
      if (armed !== null) requestWork.arm(armed, { works, place, retractable: !success });
    }
    requestWork.handlerEnded(success);
    return requestWork.written?.then(() => {});
  }

  /**
   * Work that the handler's end speaks for is prepared now. The rest waits for the final status, which exception filters
   * and interceptors may still turn, and is prepared only should it come to that.
   */
  private armFor(work: PlannedWork, end: HandlerEnd): MaybeArmed {
    const when = work.when ?? 'success';
    if (runsAfter(when, end.success)) return this.armNow(work, when, end);
    return {
      name: work.name,
      when,
      commit: (status) => {
        const armed = this.armNow(work, when, end);
        if (!isThenable(armed)) return armed?.commit(status);
        const { counters } = this.engine;
        counters.expect(1);
        void armed.then((late) => {
          late?.commit(status);
          counters.expect(-1);
        });
      },
      discard: () => void this.giveBack(work, end),
    };
  }

  /** Never throws: whatever goes wrong while preparing is counted and reported, and the response goes on. */
  private armNow(work: PlannedWork, when: DeferWhen, end: HandlerEnd): MaybeArmed {
    const failed = (error: unknown): null => {
      this.engine.counters.fail(null, unstarted(work.name, namesOf(end.origin), work.durable), error);
      return this.giveBack(work, end);
    };
    try {
      const armed = this.arm(work, when, end);
      return isThenable(armed) ? armed.catch(failed) : armed;
    } catch (error) {
      return failed(error);
    }
  }

  private giveBack(work: PlannedWork, { reserved }: HandlerEnd): null {
    reserved.get(work)?.release();
    return null;
  }

  private arm(work: PlannedWork, when: DeferWhen, end: HandlerEnd): MaybeArmed {
    const { origin, requestWork } = end;
    const capacity = end.reserved.get(work);
    const reserved = capacity === undefined ? false : capacity === null ? 'disk' : 'memory';
    const arming: Arming = { when, origin, reserved, sequence: requestWork };
    if ('run' in work) {
      return this.engine.armTask(work, ({ told }) => work.run(contextOf(end, told.status)), arming);
    }
    const armWith = (instance: AnyWork): Armed | null => {
      const data: unknown = instance.prepare === undefined ? end.result : instance.prepare(contextOf(end));
      if (isThenable(data)) {
        Promise.resolve(data).catch(() => {});
        throw new TypeError('prepare() returned a promise: pick plain data there, and do the waiting in run()');
      }
      if (instance.prepare !== undefined && data === undefined) return this.giveBack(work, end);
      return this.engine.armClass(work, instance, data, arming);
    };
    const provided = work.provide(origin.frameworkRequest);
    return isThenable(provided) ? provided.then(armWith) : armWith(provided);
  }
}

/** At once where there is nothing to wait for. */
function after<T>(done: Promise<void> | undefined, proceed: () => T): T | Promise<T> {
  return done === undefined ? proceed() : done.then(proceed);
}

/** What work is told of its handler's end: a plain object without getters, which applications spread and log. */
function contextOf({ result, error, origin }: HandlerEnd, status: number | null = null): DeferContext {
  return { request: origin.frameworkRequest as PerfRequest, result, error, status, requestId: origin.id };
}
