import { ServiceUnavailableException } from '@nestjs/common';
import { isObservable, Observable } from 'rxjs';
import type { PerfRequest } from '../../core/perf-request.js';
import type { RequestState } from '../../core/request-state.js';
import type { Around } from '../../http/handler.interceptor.js';
import type { DeferEngine } from '../defer-engine.js';
import type { DeclaredWork } from './defer-work.decorator.js';
import type { DeferContext, DeferWhen } from '../deferred-work.js';
import { durableEntry, durableShape, type DurableShape } from '../durable/durable-entry.js';
import { full } from '../overflow.js';
import type { Armed, RequestTasks } from '../request-tasks.js';
import type { Room } from '../room.js';
import { TaskSequence, type TaskRun } from '../tasks/task.js';
import { isBatch, type AnyWork, type ProvideWork } from './work-providers.js';

/** One piece of work on one handler, with its provider found. */
export type PlannedWork = DeclaredWork & {
  /** In records and reports. */
  readonly name: string;
  /** `'OrdersController.create'` */
  readonly handler: string;
  readonly provide: ProvideWork | null;
  /** Name and handler, for errors. */
  readonly place: string;
};
type ClassWork = PlannedWork & { kind: 'class' };

/** One call of a handler, and how it ended. */
class HandlerEnd {
  result: unknown = undefined;
  error: unknown = null;
  success = false;

  constructor(
    readonly works: readonly PlannedWork[],
    readonly state: RequestState | null,
    readonly request: unknown,
    readonly reserved: boolean,
    readonly tasks: RequestTasks | null,
  ) {}

  /** Where the tasks of a request stand; without a request each has a line of its own. */
  get sequence(): TaskSequence {
    return this.tasks ?? new TaskSequence();
  }
}

type MaybeArmed = Armed | null | Promise<Armed | null>;

/** Arms the work that stands on handlers, at the handler's end. A response waits for it only when a journal must be written. */
export class HandlerWorks {
  private readonly shapes = new Map<PlannedWork, DurableShape>();

  constructor(
    private readonly engine: DeferEngine,
    private readonly tasksOf: (state: RequestState) => RequestTasks,
  ) {}

  /** What goes around one handler. `streams`: it returns server-sent events, which have no result. */
  around(works: readonly PlannedWork[], streams: boolean): Around {
    return (state, request, proceed) => {
      const tasks = state === null ? null : this.tasksOf(state);
      // An interceptor tries the handler again: what the failed call has armed is not wanted any more.
      tasks?.retract(works);
      const reserved = this.reserve(works);
      const end = new HandlerEnd(works, state, request, reserved, tasks);
      let result: unknown;
      try {
        result = proceed();
      } catch (error) {
        const done = this.failed(end, error);
        if (done === undefined) throw error;
        return done.then(() => {
          throw error;
        });
      }
      if (!isThenable(result)) return this.afterValue(end, result, streams);
      // A lazy query runs when it is awaited: once, here.
      return Promise.resolve(result).then(
        (value: unknown) => this.afterValue(end, value, streams),
        async (error: unknown) => {
          await this.failed(end, error);
          throw error;
        },
      );
    };
  }

  private afterValue(end: HandlerEnd, value: unknown, streams: boolean): unknown {
    if (isObservable(value) && !streams) return this.afterStream(end, value);
    const done = this.succeeded(end, streams ? undefined : value);
    return done === undefined ? value : done.then(() => value);
  }

  /** Its last value is the handler's result, as it is for Nest. Whoever listens sees each value when it comes. */
  private afterStream(end: HandlerEnd, values: Observable<unknown>): Observable<unknown> {
    return new Observable((subscriber) => {
      let last: unknown;
      let hasValue = false;
      let ended = false;
      const after = async (done: void | Promise<void>, end: () => void): Promise<void> => {
        await done;
        end();
      };
      const subscription = values.subscribe({
        next: (value) => {
          last = value;
          hasValue = true;
          subscriber.next(value);
        },
        error: (error: unknown) => {
          ended = true;
          const done = this.failed(end, error);
          if (done === undefined) subscriber.error(error);
          else void after(done, () => subscriber.error(error));
        },
        complete: () => {
          ended = true;
          const done = this.succeeded(end, last);
          if (done === undefined) subscriber.complete();
          else void after(done, () => subscriber.complete());
        },
      });
      return () => {
        subscription.unsubscribe();
        if (ended) return;
        ended = true;
        // `first()` has what it wants; `timeout()` has given up.
        void (hasValue ? this.succeeded(end, last) : this.failed(end, new Error('its observable was given up')));
      };
    });
  }

  /**
   * With `overflow: 'reject'`, takes room for all the handler's work before it starts.
   * @throws ServiceUnavailableException when there is none
   */
  private reserve(works: readonly PlannedWork[]): boolean {
    if (this.engine.options.overflow !== 'reject') return false;
    const taken: Room[] = [];
    for (const work of works) {
      const room = this.roomOf(work);
      if (room === null) continue;
      if (room.take()) {
        taken.push(room);
        continue;
      }
      for (const other of taken) other.release();
      const cause = full(work.name, room);
      throw new ServiceUnavailableException('Too much work is waiting. Try again later.', { cause });
    }
    return true;
  }

  /** Null where a disk has room. */
  private roomOf({ durable }: PlannedWork): Room | null {
    if (!durable) return this.engine.taskRoom;
    return this.engine.journaled ? null : this.engine.durableRoom;
  }

  private succeeded(end: HandlerEnd, result: unknown): void | Promise<void> {
    end.result = result;
    end.success = true;
    return this.armAll(end);
  }

  private failed(end: HandlerEnd, error: unknown): void | Promise<void> {
    end.error = error;
    return this.armAll(end);
  }

  private armAll(end: HandlerEnd): void | Promise<void> {
    const { works, tasks, success } = end;
    // From the first that must wait on, all wait, so that their order stays.
    let waiting: MaybeArmed[] | null = null;
    for (const work of works) {
      const armed = this.armFor(work, end);
      if (waiting !== null) waiting.push(armed);
      else if (armed instanceof Promise) waiting = [armed];
      else if (armed !== null) place(armed, end);
    }
    if (waiting === null) {
      tasks?.handlerEnded(success);
      return undefined;
    }
    return Promise.all(waiting as Promise<Armed | null>[]).then((all) => {
      for (const armed of all) if (armed !== null) place(armed, end);
      tasks?.handlerEnded(success);
    });
  }

  /**
   * Work that the handler's end speaks for is prepared now. The rest waits for the final status, which exception filters
   * and interceptors may still turn, and is prepared only should it come to that.
   */
  private armFor(work: PlannedWork, end: HandlerEnd): MaybeArmed {
    const when = work.when ?? 'success';
    if (when === 'always' || (when === 'success') === end.success) return this.armNow(work, when, end);
    return {
      when,
      commit: (status) => {
        const armed = this.armNow(work, when, end);
        if (armed instanceof Promise) void armed.then((late) => late?.commit(status));
        else armed?.commit(status);
      },
      discard: () => {
        if (end.reserved) this.roomOf(work)?.release();
      },
    };
  }

  /** Never throws: whatever goes wrong while preparing is counted and reported, and the response goes on. */
  private armNow(work: PlannedWork, when: DeferWhen, end: HandlerEnd): MaybeArmed {
    try {
      const armed = this.arm(work, when, end);
      return armed instanceof Promise ? armed.catch((error: unknown) => this.unprepared(work, end, error)) : armed;
    } catch (error) {
      return this.unprepared(work, end, error);
    }
  }

  private unprepared(work: PlannedWork, end: HandlerEnd, error: unknown): null {
    if (end.reserved) this.roomOf(work)?.release();
    const requestId = end.state?.id ?? null;
    const route = end.state?.pattern ?? null;
    this.engine.ledger.failUnqueued(
      { name: work.name, requestId, route, durable: work.durable, waitMs: 0, runMs: 0, attempt: 1 },
      error,
    );
    return null;
  }

  private arm(work: PlannedWork, when: DeferWhen, end: HandlerEnd): MaybeArmed {
    if (work.kind === 'function') {
      return this.armTask(work, (info) => work.run(contextOf(end, info.status)), when, end);
    }
    const provided = work.provide?.(end.request);
    if (provided === undefined) return null;
    return provided instanceof Promise
      ? provided.then((instance) => this.armInstance(work, instance, when, end))
      : this.armInstance(work, provided, when, end);
  }

  private armInstance(work: ClassWork, instance: AnyWork, when: DeferWhen, end: HandlerEnd): MaybeArmed {
    const data: unknown = instance.prepare === undefined ? end.result : instance.prepare(contextOf(end));
    if (isThenable(data)) {
      Promise.resolve(data).catch(() => {});
      throw new TypeError('prepare() returned a promise: pick plain data there, and do the waiting in run()');
    }
    if (instance.prepare !== undefined && data === undefined) return this.declined(work, end);
    if (work.durable) return this.armDurable(work, isBatch(instance), data, when, end);
    if (isBatch(instance)) {
      return this.engine.armItem({ instance, spec: work, batch: work.batch }, data, when, end.state, end.reserved);
    }
    return this.armTask(work, (info) => instance.run(data, info), when, end);
  }

  private declined(work: PlannedWork, end: HandlerEnd): null {
    if (end.reserved) this.roomOf(work)?.release();
    return null;
  }

  private armTask(work: PlannedWork, run: TaskRun, when: DeferWhen, end: HandlerEnd): Armed | null {
    return this.engine.armTask(work, run, when, end.state, end.sequence, end.reserved);
  }

  private armDurable(
    work: ClassWork,
    batched: boolean,
    data: unknown,
    when: DeferWhen,
    { state, reserved }: HandlerEnd,
  ): MaybeArmed {
    const { engine } = this;
    let shape = this.shapes.get(work);
    if (shape === undefined) {
      shape = durableShape(engine, { ...work, work: work.type.name, batched });
      this.shapes.set(work, shape);
    }
    const entry = durableEntry(engine.ids.next(), shape, data, state, work.place);
    return engine.journaled ? engine.armJournaled(entry, when) : engine.armDurable(entry, when, reserved);
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as { then?: unknown } | null | undefined)?.then === 'function';

/** What work is told of its handler's end: a plain object, which applications spread and log. */
function contextOf({ request, result, error, state }: HandlerEnd, status: number | null = null): DeferContext {
  return {
    request: request as PerfRequest,
    result,
    error,
    status,
    // Built when it is read.
    get requestId() {
      return state?.id ?? '';
    },
  };
}

/** Hands armed work to its request; without one that is observed, the handler's end decides. */
function place(armed: Armed, { tasks, success, works }: HandlerEnd): void {
  if (tasks !== null) tasks.arm(armed, success ? null : works);
  else if (armed.when === 'always' || (armed.when === 'success') === success) armed.commit(null);
  else armed.discard();
}
