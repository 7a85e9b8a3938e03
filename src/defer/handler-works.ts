import { ServiceUnavailableException } from '@nestjs/common';
import { isObservable, lastValueFrom } from 'rxjs';
import { epochMsOf } from '../core/clock.js';
import type { RequestState } from '../core/request-state.js';
import type { Around } from '../http/around.js';
import type { DeferEngine } from './defer-engine.js';
import type { DeclaredWork } from './defer-work.decorator.js';
import type { DeferContext, DeferWhen } from './deferred-work.js';
import type { DurableJob } from './durable-store.js';
import { full } from './overflow.js';
import type { Armed, RequestTasks } from './request-tasks.js';
import type { Room } from './room.js';
import { toJson } from './serialize.js';
import { TaskSequence } from './task.js';
import type { ProvideWork } from './work-providers.js';

/** One piece of work on one handler, with its provider found. */
export type PlannedWork = DeclaredWork & {
  /** In records and reports. */
  readonly label: string;
  /** `'OrdersController.create'` */
  readonly handler: string;
  readonly provide: ProvideWork | null;
};

/** How a handler ended. */
interface Ending {
  readonly state: RequestState | null;
  readonly request: unknown;
  readonly result: unknown;
  readonly error: unknown;
  readonly success: boolean;
  readonly sequence: TaskSequence;
  readonly reserved: boolean;
}

type MaybeArmed = Armed | null | Promise<Armed | null>;

/** Arms the work that stands on handlers, at the handler's end. A response waits for it only when a journal must be written. */
export class HandlerWorks {
  constructor(
    private readonly engine: DeferEngine,
    private readonly tasksOf: (state: RequestState) => RequestTasks,
  ) {}

  /** What goes around one handler. `streams`: it returns server-sent events, which have no result. */
  around(works: readonly PlannedWork[], streams: boolean): Around {
    return (state, request, proceed) => {
      const reserved = this.reserve(works);
      const end = (result: unknown, error: unknown, success: boolean): void | Promise<void> =>
        this.ended(works, state, request, { result, error, success, reserved });
      let result: unknown;
      try {
        result = proceed();
      } catch (error) {
        const done = end(undefined, error, false);
        if (done === undefined) throw error;
        return done.then(() => {
          throw error;
        });
      }
      if (isObservable(result)) {
        if (streams) {
          const done = end(undefined, null, true);
          return done === undefined ? result : done.then(() => result);
        }
        result = lastValueFrom(result, { defaultValue: undefined });
      }
      if (!(result instanceof Promise)) {
        const done = end(result, null, true);
        return done === undefined ? result : done.then(() => result);
      }
      return result.then(
        (value: unknown) => {
          const done = end(value, null, true);
          return done === undefined ? value : done.then(() => value);
        },
        async (error: unknown) => {
          await end(undefined, error, false);
          throw error;
        },
      );
    };
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
      if (room.take()) {
        taken.push(room);
        continue;
      }
      for (const other of taken) other.release();
      const cause = full(work.label, room);
      throw new ServiceUnavailableException('Too much work is waiting. Try again later.', { cause });
    }
    return true;
  }

  private roomOf({ durable }: PlannedWork): Room {
    return durable ? this.engine.outboxRoom : this.engine.taskRoom;
  }

  private ended(
    works: readonly PlannedWork[],
    state: RequestState | null,
    request: unknown,
    how: Pick<Ending, 'result' | 'error' | 'success' | 'reserved'>,
  ): void | Promise<void> {
    const tasks = state === null ? null : this.tasksOf(state);
    const ending: Ending = { ...how, state, request, sequence: tasks?.sequence ?? new TaskSequence() };
    const armed = works.map((work) => this.armFor(work, ending));
    const arm = (all: readonly (Armed | null)[]): void => {
      for (const one of all) if (one !== null) place(one, tasks, how.success);
      tasks?.handlerEnded(how.success);
    };
    if (!armed.some((one) => one instanceof Promise)) {
      arm(armed as (Armed | null)[]);
      return undefined;
    }
    return Promise.all(armed as Promise<Armed | null>[]).then(arm);
  }

  /**
   * Work that the handler's end speaks for is prepared now. The rest waits for the final status, which exception filters
   * and interceptors may still turn, and is prepared only should it come to that.
   */
  private armFor(work: PlannedWork, ending: Ending): MaybeArmed {
    const when = work.when ?? 'success';
    if (when === 'always' || (when === 'success') === ending.success) return this.armNow(work, when, ending);
    return {
      when,
      commit: (status) => {
        const armed = this.armNow(work, when, ending);
        if (armed instanceof Promise) void armed.then((late) => late?.commit(status));
        else armed?.commit(status);
      },
      discard: () => {
        if (ending.reserved) this.roomOf(work).release();
      },
    };
  }

  /** Never throws: whatever goes wrong while preparing is counted and reported, and the response goes on. */
  private armNow(work: PlannedWork, when: DeferWhen, ending: Ending): MaybeArmed {
    const fail = (error: unknown): null => {
      if (ending.reserved) this.roomOf(work).release();
      const requestId = ending.state?.id ?? null;
      this.engine.ledger.failUnqueued({ name: work.label, requestId, waitMs: 0, runMs: 0, attempt: 1 }, error);
      return null;
    };
    try {
      const armed = this.arm(work, when, ending);
      return armed instanceof Promise ? armed.catch(fail) : armed;
    } catch (error) {
      return fail(error);
    }
  }

  private arm(work: PlannedWork, when: DeferWhen, ending: Ending): MaybeArmed {
    const { state, sequence, reserved } = ending;
    const requestId = state?.id ?? null;
    const context = contextOf(ending, requestId);
    const { label: name, timeoutMs, attempts } = work;
    if (work.kind === 'function') {
      const run = (info: { status: number | null }): unknown => work.run({ ...context, status: info.status });
      return this.engine.armTask({ name, timeoutMs, attempts, run }, when, { requestId, sequence }, reserved);
    }
    const provided = work.provide?.(ending.request);
    const prepared = (instance: Awaited<typeof provided>): MaybeArmed => {
      if (instance === undefined) return null;
      const data: unknown = instance.prepare === undefined ? ending.result : instance.prepare(context);
      if (data instanceof Promise) {
        data.catch(() => {});
        throw new TypeError('prepare() returned a promise: pick plain data there, and do the waiting in run()');
      }
      if (work.durable) return this.armDurable(work, data, when, requestId, reserved);
      const run = instance.run.bind(instance, data);
      return this.engine.armTask({ name, timeoutMs, attempts, run }, when, { requestId, sequence }, reserved);
    };
    return provided instanceof Promise ? provided.then(prepared) : prepared(provided);
  }

  private armDurable(
    work: PlannedWork & { kind: 'class' },
    data: unknown,
    when: DeferWhen,
    requestId: string | null,
    reserved: boolean,
  ): MaybeArmed {
    const { label: name, timeoutMs, attempts, envelope, type } = work;
    const job: Omit<DurableJob, 'data' | 'status'> = {
      id: this.engine.ids.next(),
      work: type.name,
      name,
      requestId,
      timeoutMs,
      attempts,
      at: epochMsOf(performance.now()),
    };
    const entry = { ...job, envelope, json: toJson(data, `${name} of "${work.handler}"`) };
    return this.engine.journaled
      ? this.engine.armJournaled(entry, when, reserved)
      : this.engine.armDurable(entry, when, reserved);
  }
}

function contextOf({ request, result, error }: Ending, requestId: string | null): DeferContext {
  return { request, result, error, status: null, requestId: requestId ?? '' };
}

/** Hands armed work to its request; without one that is observed, the handler's end decides. */
function place(armed: Armed, tasks: RequestTasks | null, success: boolean): void {
  if (tasks !== null) tasks.arm(armed);
  else if (armed.when === 'always' || (armed.when === 'success') === success) armed.commit(null);
  else armed.discard();
}
