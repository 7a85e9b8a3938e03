import { ServiceUnavailableException, type Type } from '@nestjs/common';
import { isObservable, Observable } from 'rxjs';
import { getOrAdd } from '../../core/get-or-add.js';
import type { PerfRequest } from '../../core/perf-request.js';
import { PerfError } from '../../core/perf.error.js';
import { isThenable } from '../../core/thenable.js';
import type { RequestState, RunsHandlers } from '../../request/request-state.js';
import { nameOrigin, unstarted } from '../counters.js';
import type { DeferEngine } from '../defer-engine.js';
import type { DeferContext, DeferFunction, DeferWhen } from '../deferred-work.js';
import { openRequestWork, type RequestWork, runsAfter } from '../request-work.js';
import type { Armed } from '../item.js';
import type { WorkOptions } from '../work-options.js';
import type { Declaration, DeclaredWork } from './defer-work.decorator.js';
import type { AnyWork, ClassWork, WorkProviders } from './work-providers.js';

type PlannedWork = ClassWork | (WorkOptions & { readonly name: string; readonly run: DeferFunction });

/** The works of a decorated method as a controller runs it. */
interface Plan {
  readonly works: readonly PlannedWork[];
  /** The method returns server-sent events, which have no result. */
  readonly streams: boolean;
}

/** An error: there is no room for it, and the route answers 503. */
type Ready = Armed | PerfError | null;

interface HandlerEnd extends Plan {
  readonly origin: RequestState;
  /** Work that its request has armed. */
  readonly requestWork: RequestWork;
  /** The number of works that the request had armed when the handler began. */
  readonly place: number;
  result: unknown;
  error: unknown;
  success: boolean;
}

/** Runs decorated handlers, and arms their works at their end. */
export class HandlerWorks implements RunsHandlers {
  /** By declaration, then by controller class. */
  private readonly plans = new Map<Declaration, Map<unknown, Plan>>();

  constructor(
    private readonly engine: DeferEngine,
    private readonly providers: WorkProviders,
  ) {}

  /** Called at boot; at the first call where another decorator hides the method, or an overriding method calls it. @throws PERF_ERR_DEFER_WORK, PERF_ERR_STORE */
  plan(declaration: Declaration, controller: unknown, handler: string, streams = false): Plan {
    const plans = getOrAdd(this.plans, declaration, () => new Map<unknown, Plan>());
    const planOne = (work: DeclaredWork): PlannedWork => this.planOne(work, controller as Type, handler);
    return getOrAdd(plans, controller, () => ({ works: declaration.works.map(planOne), streams }));
  }

  private planOne(work: DeclaredWork, controller: Type, handler: string): PlannedWork {
    if ('run' in work) return { ...work, name: work.name ?? (work.run.name || handler) };
    return this.providers.plan(work.type, work, handler, controller);
  }

  /** A method that returns no promise still returns none, except where its works must be made or be on disk first. */
  runHandler(declaration: Declaration, controller: unknown, origin: RequestState, proceed: () => unknown): unknown {
    const type = (controller as object | null | undefined)?.constructor;
    const known = this.plans.get(declaration)?.get(type);
    const { works, streams } = known ?? this.plan(declaration, type, `${type?.name}.${declaration.method.name}`);
    const requestWork = openRequestWork(origin, this.engine.undecided);
    // An interceptor tries the handler again: what the failed call has armed is not wanted any more.
    requestWork.retract(works);
    const place = requestWork.size;
    const end = { works, streams, origin, requestWork, place, result: undefined, error: null, success: false };
    const ended = this.engine.handlerStarted();
    try {
      const value = this.proceed(end, proceed);
      if (isThenable(value)) return settle(value, ended);
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
      // A lazy query runs when it is awaited: once, here.
      return await this.afterValue(end, await pending);
    } catch (error) {
      return this.fail(end, error);
    }
  }

  private afterValue(end: HandlerEnd, value: unknown): unknown {
    if (isObservable(value) && !end.streams) return this.afterStream(end, value);
    const armed = this.succeed(end, end.streams ? undefined : value);
    // At once where there is nothing to wait for.
    return armed === undefined ? value : armed.then(() => value);
  }

  /** An observable is one value: its last, once it has completed, as it is for Nest. */
  private afterStream(end: HandlerEnd, values: Observable<unknown>): Observable<unknown> {
    return new Observable((subscriber) => {
      const handled = this.engine.handlerStarted();
      const last: unknown[] = [];
      const over = new Promise<void>((resolve, reject) => {
        const subscription = values.subscribe({ next: (value) => (last[0] = value), error: reject, complete: resolve });
        subscriber.add(() => {
          subscription.unsubscribe();
          // By `timeout()` for example. Once it is over, this changes nothing.
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

  /** Throws the error of the handler, once its works are armed, or the 503 of a handler that has succeeded. */
  private fail(end: HandlerEnd, error: unknown): Promise<never> {
    const armed = end.success ? undefined : this.armAll(Object.assign(end, { error }));
    if (armed === undefined) throw error;
    return armed.then(() => {
      throw error;
    });
  }

  /** Resolves when all of it is armed: what must be on disk is. Undefined: it is already. */
  private armAll(end: HandlerEnd): Promise<void> | undefined {
    const armings = end.works.map((work) => this.armFor(work, end));
    if (!armings.some(isThenable)) return this.place(end, armings as Ready[]);
    const ready = armings.map(async (armed) => await armed);
    return Promise.all(ready).then((all) => this.place(end, all));
  }

  private place(end: HandlerEnd, armings: readonly Ready[]): Promise<void> | undefined {
    const { works, requestWork, place, success } = end;
    for (const armed of armings) {
      if (armed !== null && !isRefusal(armed)) requestWork.arm(armed, { works, place, hasFailed: !success });
    }
    const refusal = armings.find(isRefusal) ?? null;
    requestWork.handlerEnded(success && refusal === null);
    if (refusal !== null) throw noRoom(refusal);
    return requestWork.written?.then((unwritten) => {
      if (unwritten !== null && canAnswer(end)) throw noRoom(unwritten);
    });
  }

  /** Work that the handler's end does not decide is prepared once the final status does: filters and interceptors may turn it. */
  private armFor(work: PlannedWork, end: HandlerEnd): Ready | Promise<Ready> {
    const when = work.when ?? 'success';
    if (runsAfter(when, end.success)) return this.armNow(work, when, end, canAnswer(end));
    const commit = (status: number | null): void => {
      const commitOne = (armed: Ready): void => (isRefusal(armed) ? undefined : armed?.commit(status));
      const armed = this.armNow(work, when, end, false);
      if (!isThenable(armed)) return commitOne(armed);
      const { counters } = this.engine;
      counters.expect(1);
      void armed.then(commitOne).then(() => counters.expect(-1));
    };
    return { name: work.name, when, commit, discard: () => {} };
  }

  /** Never throws: whatever goes wrong while preparing is counted and reported, and the response goes on; unless it `mayRefuse`. */
  private armNow(work: PlannedWork, when: DeferWhen, end: HandlerEnd, mayRefuse: boolean): Ready | Promise<Ready> {
    const failed = (error: unknown): PerfError | null => {
      const item = unstarted(work.name, nameOrigin(end.origin), work.durable);
      if (!isRefusal(error)) this.engine.counters.end(null, item, 'failed', error);
      else if (mayRefuse) return error;
      else this.engine.counters.end(null, item, 'dropped', 'there is no room for it (defer.maxPending)');
      return null;
    };
    try {
      const armed = this.arm(work, when, end);
      return isThenable(armed) ? armed.catch(failed) : armed;
    } catch (error) {
      return failed(error);
    }
  }

  /** A promise for request-scoped work, which must be made first. */
  private arm(work: PlannedWork, when: DeferWhen, end: HandlerEnd): Armed | null | Promise<Armed | null> {
    const { origin, requestWork } = end;
    const arming = { when, origin, sequence: requestWork };
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

const isRefusal = (error: unknown): error is PerfError =>
  error instanceof PerfError && error.code === 'PERF_ERR_DEFER_FULL';

const noRoom = (cause: PerfError): Error =>
  new ServiceUnavailableException('Too much work is waiting. Try again later.', { cause });

/** The handler has succeeded, and has not answered by itself. */
const canAnswer = ({ success, origin }: HandlerEnd): boolean => success && origin.response?.headersSent !== true;

/** `finally()` of a promise that may be another one than the global: zone.js's, for example. */
async function settle(pending: unknown, ended: () => void): Promise<unknown> {
  try {
    return await pending;
  } finally {
    ended();
  }
}

/** The handler's end as work reads it: a plain object without getters, which applications spread and log. */
function makeContext({ result, error, origin }: HandlerEnd, status: number | null = null): DeferContext {
  return { request: origin.frameworkRequest as PerfRequest, result, error, status, requestId: origin.id };
}
