import { ServiceUnavailableException, type Type } from '@nestjs/common';
import { isObservable, Observable } from 'rxjs';
import { getOrAdd } from '../../core/get-or-add.js';
import type { PerfRequest } from '../../core/perf-request.js';
import { PerfError } from '../../core/perf.error.js';
import { isThenable } from '../../core/thenable.js';
import type { RequestState, RunsHandlers } from '../../request/request-state.js';
import { describeOrigin, describeUnstarted } from '../counters.js';
import type { DeferEngine } from '../defer-engine.js';
import type { DeferContext, DeferFunction, DeferWhen } from '../deferred-work.js';
import { openRequestWork, type RequestWork, runsAfter } from '../request-work.js';
import type { Armed } from '../item.js';
import type { WorkOptions } from '../work-options.js';
import type { Declaration, DeclaredWork } from './defer-work.decorator.js';
import type { AnyWork, ClassWork, WorkProviders } from './work-providers.js';

type PlannedWork = ClassWork | (WorkOptions & { readonly name: string; readonly run: DeferFunction });

/** The works of a decorated method, resolved for one controller. */
interface Plan {
  readonly works: readonly PlannedWork[];
  /** Server-sent events have no result. */
  readonly sendsEvents: boolean;
}

/** Null: it declined, or was dropped. An error: it found no room, and the route answers 503. */
type Armament = Armed | PerfError | null;

interface HandlerEnd extends Plan {
  readonly origin: RequestState;
  readonly requestWork: RequestWork;
  readonly armedBefore: number;
  result: unknown;
  error: unknown;
  success: boolean;
}

/** Runs decorated handlers, and arms the works of each when it has ended. */
export class HandlerWorks implements RunsHandlers {
  /** By declaration, then by controller class. */
  private readonly plans = new Map<Declaration, Map<unknown, Plan>>();

  constructor(
    private readonly engine: DeferEngine,
    private readonly providers: WorkProviders,
  ) {}

  /**
   * Called at boot, or at the first call of a method that another decorator or an override has hidden from the boot.
   * @throws PERF_ERR_DEFER_WORK, PERF_ERR_STORE
   */
  plan(declaration: Declaration, controller: unknown, handler: string, sendsEvents = false): Plan {
    const plans = getOrAdd(this.plans, declaration, () => new Map<unknown, Plan>());
    const planOne = (work: DeclaredWork): PlannedWork => this.planOne(work, controller as Type, handler);
    return getOrAdd(plans, controller, () => ({ works: declaration.works.map(planOne), sendsEvents }));
  }

  private planOne(work: DeclaredWork, controller: Type, handler: string): PlannedWork {
    if ('run' in work) return { ...work, name: work.name ?? (work.run.name || handler) };
    return this.providers.plan(work.type, work, handler, controller);
  }

  /** A handler without a promise still returns none, unless its works are request-scoped or must be on disk first. */
  runHandler(declaration: Declaration, controller: unknown, origin: RequestState, proceed: () => unknown): unknown {
    const type = (controller as object | null | undefined)?.constructor;
    const known = this.plans.get(declaration)?.get(type);
    const { works, sendsEvents } = known ?? this.plan(declaration, type, `${type?.name}.${declaration.method.name}`);
    const requestWork = openRequestWork(origin, this.engine.undecided);
    // An interceptor may have called the handler before: what that failed call has armed goes.
    requestWork.retract(works);
    const armedBefore = requestWork.size;
    const end = {
      works,
      sendsEvents,
      origin,
      requestWork,
      armedBefore,
      result: undefined,
      error: null,
      success: false,
    };
    const ended = this.engine.handlerStarted();
    try {
      const value = this.proceed(end, proceed);
      if (isThenable(value)) return callAfter(value, ended);
      ended();
      return value;
    } catch (error) {
      ended();
      throw error;
    }
  }

  private proceed(end: HandlerEnd, proceed: () => unknown): unknown {
    try {
      const value = proceed();
      return isThenable(value) ? this.afterPromise(end, value) : this.afterValue(end, value);
    } catch (error) {
      return this.fail(end, error);
    }
  }

  private async afterPromise(end: HandlerEnd, pending: unknown): Promise<unknown> {
    try {
      // A query builder runs its query each time it is awaited: only here.
      return await this.afterValue(end, await pending);
    } catch (error) {
      return this.fail(end, error);
    }
  }

  private afterValue(end: HandlerEnd, value: unknown): unknown {
    if (isObservable(value) && !end.sendsEvents) return this.afterStream(end, value);
    const armed = this.succeed(end, end.sendsEvents ? undefined : value);
    return armed === undefined ? value : armed.then(() => value);
  }

  /** An observable counts as its last value, once it has completed, as it does for Nest. */
  private afterStream(end: HandlerEnd, values: Observable<unknown>): Observable<unknown> {
    return new Observable((subscriber) => {
      const handled = this.engine.handlerStarted();
      const last: unknown[] = [];
      const over = new Promise<void>((resolve, reject) => {
        const subscription = values.subscribe({ next: (value) => (last[0] = value), error: reject, complete: resolve });
        subscriber.add(() => {
          subscription.unsubscribe();
          // Unsubscribed by `timeout()`, for example. Without effect once it has completed.
          reject(new Error('its observable was given up'));
        });
      });
      const armed = over.then(
        () => this.succeed(end, last[0]),
        (error: unknown) => this.fail(end, error),
      );
      const delivered = armed.then(
        () => {
          if (last.length > 0) subscriber.next(last[0]);
          subscriber.complete();
        },
        (error: unknown) => subscriber.error(error),
      );
      void delivered.then(handled, handled);
    });
  }

  /** @throws 503 with `overflow: 'reject'`, where some of it finds no room, on disk or in memory */
  private succeed(end: HandlerEnd, result: unknown): Promise<void> | undefined {
    return this.armAll(Object.assign(end, { result, success: true }));
  }

  /** Throws the handler's error once its works are armed; or the 503 of `succeed()`, whose works are armed already. */
  private fail(end: HandlerEnd, error: unknown): Promise<never> {
    const armed = end.success ? undefined : this.armAll(Object.assign(end, { error }));
    if (armed === undefined) throw error;
    return armed.then(() => {
      throw error;
    });
  }

  /** Resolves when all works are armed, and on disk where they must be. Undefined: they are already. */
  private armAll(end: HandlerEnd): Promise<void> | undefined {
    const armings = end.works.map((work) => this.armOrPostpone(work, end));
    if (!armings.some(isThenable)) return this.addToRequest(end, armings as Armament[]);
    const ready = armings.map(async (armed) => await armed);
    return Promise.all(ready).then((all) => this.addToRequest(end, all));
  }

  private addToRequest(end: HandlerEnd, armings: readonly Armament[]): Promise<void> | undefined {
    const { works, requestWork, armedBefore, success } = end;
    for (const armed of armings) {
      if (armed !== null && !isRefusal(armed)) requestWork.arm(armed, { works, armedBefore, hasFailed: !success });
    }
    const refusal = armings.find(isRefusal) ?? null;
    requestWork.handlerEnded(success && refusal === null);
    if (refusal !== null) throw noRoom(refusal);
    return requestWork.writes?.then((refused) => {
      if (refused !== null && canAnswer(end)) throw noRoom(refused);
    });
  }

  /** Work that does not suit the handler's end is prepared once the status is final: a filter may turn an error into a 200. */
  private armOrPostpone(work: PlannedWork, end: HandlerEnd): Armament | Promise<Armament> {
    const when = work.when ?? 'success';
    if (runsAfter(when, end.success)) return this.armNow(work, when, end, canAnswer(end));
    const commit = (status: number | null): void => {
      const commitOne = (armed: Armament): void => (isRefusal(armed) ? undefined : armed?.commit(status));
      const armed = this.armNow(work, when, end, false);
      if (!isThenable(armed)) return commitOne(armed);
      const { counters } = this.engine;
      counters.expect(1);
      void armed.then(commitOne).then(() => counters.expect(-1));
    };
    return { name: work.name, when, commit, discard: () => {} };
  }

  /** Never throws: counts and reports an error of `prepare`, and the response goes on. With `mayRefuse`, returns the error for a lack of room. */
  private armNow(
    work: PlannedWork,
    when: DeferWhen,
    end: HandlerEnd,
    mayRefuse: boolean,
  ): Armament | Promise<Armament> {
    const failed = (error: unknown): PerfError | null => {
      const item = describeUnstarted(work.name, describeOrigin(end.origin), work.durable);
      if (!isRefusal(error)) this.engine.counters.end(null, item, 'failed', error);
      else if (mayRefuse) return error;
      else this.engine.counters.end(null, item, 'dropped', NO_ROOM);
      return null;
    };
    try {
      const armed = this.arm(work, when, end);
      return isThenable(armed) ? armed.catch(failed) : armed;
    } catch (error) {
      return failed(error);
    }
  }

  /** A promise for a request-scoped class: Nest makes its instance first. */
  private arm(work: PlannedWork, when: DeferWhen, end: HandlerEnd): Armed | null | Promise<Armed | null> {
    const { origin, requestWork } = end;
    const arming = { when, origin, sequence: requestWork.sequence };
    if ('run' in work) {
      return this.engine.armTask(work, ({ details }) => work.run(makeContext(end, details.status)), arming);
    }
    const armWith = (instance: AnyWork): Armed | null => {
      const data: unknown = instance.prepare === undefined ? end.result : instance.prepare(makeContext(end));
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

const NO_ROOM = 'there is no room for it within defer.maxPending and defer.maxPendingBytes';
const isRefusal = (error: unknown): error is PerfError =>
  error instanceof PerfError && error.code === 'PERF_ERR_DEFER_FULL';

const noRoom = (cause: PerfError): Error =>
  new ServiceUnavailableException('Too much work is waiting. Try again later.', { cause });

/** A handler that has sent its own answer, or threw, cannot be turned into a 503. */
const canAnswer = ({ success, origin }: HandlerEnd): boolean => success && origin.response?.headersSent !== true;

/** As `finally()`, which another library's promise may lack. */
async function callAfter(pending: unknown, ended: () => void): Promise<unknown> {
  try {
    return await pending;
  } finally {
    ended();
  }
}

/** A plain object without getters: applications spread it and log it. */
function makeContext({ result, error, origin }: HandlerEnd, status: number | null = null): DeferContext {
  return { request: origin.frameworkRequest as PerfRequest, result, error, status, requestId: origin.id };
}
