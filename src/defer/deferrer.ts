import type { Type } from '@nestjs/common';
import { PerfError } from '../core/perf.error.js';
import { attach } from '../core/attachment.js';
import { currentRequest } from '../core/current-request.js';
import type { RequestOwner, RequestState } from '../core/request-state.js';
import type { DeferStats } from '../core/snapshot.js';
import type { DeferEngine } from './defer-engine.js';
import type {
  DeferInfo,
  DeferredBatchWork,
  DeferredWork,
  DeferWorkOptions,
  EnqueueOptions,
  JobQueue,
} from './deferred-work.js';
import { durableEntry, durableShape } from './durable/durable-entry.js';
import { isClass } from './handlers/work-class.js';
import { isBatch, type AnyWork, type WorkProviders } from './handlers/work-providers.js';
import type { RejectedWork } from './outbox/rejects.js';
import { RequestTasks, type Armed } from './request-tasks.js';
import { TaskSequence } from './tasks/task.js';
import { readEnqueueOptions, readWorkOptions } from './work-options.js';

/** Of an application: where `defer()` arms work; there is none with the feature off. */
export const DEFERRER = attach<Deferrer>('application');
/** Those of the applications that run in this process: `defer()` is called without one. */
export const runningDeferrers = new Set<Deferrer>();
/** What a request has armed. */
export const REQUEST_TASKS = attach<RequestTasks>('request');

/** What a {@link Deferrer} needs of the application's requests. */
export interface DeferRequests extends RequestOwner {
  /** False: requests may not enter the context store, so nobody can tell which one runs (`context: false`). */
  readonly contextAllowed: boolean;
  readonly inFlight: number;
  enableContext(): void;
  /** Requests in flight whose code cannot be told from nobody's. */
  outsideContext(): readonly RequestState[];
  /** Resolves when no request whose response has been ended still awaits its close. */
  settled(): Promise<void>;
}

/**
 * Defers work until the response of the current request has ended. Injectable everywhere; who injects it switches the
 * context store on (`context: 'auto'`). With `defer: false` every method throws `PERF_ERR_OFF`.
 */
export class Deferrer {
  /** The application's providers, once it has booted. @internal */
  works: WorkProviders | null = null;
  /** Work of a request that could not be told, and the requests that it may be of. */
  private unplaced: { readonly armed: Armed; readonly before: readonly RequestState[] }[] = [];

  /** @internal */
  constructor(
    private readonly engine: DeferEngine | null,
    private readonly requests: DeferRequests,
  ) {}

  /**
   * Runs `task` once the response has ended or the client has gone; outside a request on the next turn of the event loop.
   * @throws PERF_ERR_OFF, PERF_ERR_CONTEXT_OFF, PERF_ERR_OPTION, PERF_ERR_DEFER_FULL (with `overflow: 'reject'`)
   */
  defer(task: (info: DeferInfo) => unknown, options?: Omit<DeferWorkOptions, 'durable'>): void;
  /**
   * The same for a class that a module provides, with `data` for its `run` or `runBatch`; `prepare` is not called.
   * With `durable: true` it goes through `defer.store` once the response has ended.
   * @throws PERF_ERR_DEFER_WORK, PERF_ERR_STORE, PERF_ERR_SERIALIZE, and what the function form throws
   */
  defer<T>(work: Type<DeferredWork<T> | DeferredBatchWork<T>>, data: T, options?: EnqueueOptions): void;
  defer(work: Type<AnyWork> | ((info: DeferInfo) => unknown), ...more: [unknown?, EnqueueOptions?]): void {
    const engine = this.ready('deferrer.defer()');
    if (typeof work !== 'function') {
      throw new PerfError('PERF_ERR_OPTION', `\`deferrer.defer()\` takes a function or a class, got ${typeof work}.`);
    }
    if (isClass(work)) this.deferClass(engine, work, more[0], more[1]);
    else this.deferFunction(engine, work, more[0] as DeferWorkOptions | undefined);
  }

  private deferFunction(engine: DeferEngine, task: (info: DeferInfo) => unknown, options?: DeferWorkOptions): void {
    const { name, when, durable, ...read } = readWorkOptions(options, 'deferrer.defer()');
    if (durable) {
      throw new PerfError(
        'PERF_ERR_OPTION',
        '`deferrer.defer()` cannot make a function durable: a worker finds work by its class. Pass a class, and its data.',
      );
    }
    const state = this.current();
    const tasks = state === null ? null : this.tasksOf(state);
    const label = name ?? (task.name || (state?.route?.handler?.name ?? 'deferred task'));
    const armed = engine.armTask({ ...read, name: label }, task, when, state, tasks ?? new TaskSequence());
    if (armed !== null) this.place(armed, tasks);
  }

  private deferClass(engine: DeferEngine, type: Type<AnyWork>, data: unknown, options?: EnqueueOptions): void {
    const read = readEnqueueOptions(options, 'deferrer.defer()');
    const { provide, kind } = this.worksOf(engine, type, read.durable, 'deferrer.defer()');
    const state = this.current();
    const tasks = state === null ? null : this.tasksOf(state);
    const spec = { ...read, name: read.name ?? type.name };
    if (read.durable) {
      const shape = durableShape(engine, { ...spec, work: type.name, batched: kind === 'batch' });
      const entry = durableEntry(read.id ?? engine.ids.next(), shape, data, state, spec.name);
      const failed = (error: unknown): null => {
        const { requestId, route } = entry;
        const ended = { name: spec.name, requestId, route, durable: true, waitMs: 0, runMs: 0, attempt: 1 };
        engine.ledger.failUnqueued(ended, error);
        return null;
      };
      const armed = engine.journaled
        ? committedLater(engine.armJournaled(entry, null).catch(failed))
        : engine.armDurable(entry, null);
      if (armed !== null) this.place(armed, tasks);
      return;
    }
    const { id } = read;
    const instance = provide(state?.frameworkRequest);
    // Whether it can be made is said when it runs.
    if (instance instanceof Promise) instance.catch(() => {});
    if (!(instance instanceof Promise) && isBatch(instance)) {
      const armed = engine.armItem({ instance, spec, batch: read.batch, id }, data, null, state);
      if (armed !== null) this.place(armed, tasks);
      return;
    }
    const run = async (info: DeferInfo): Promise<unknown> => ((await instance) as DeferredWork).run(data, info);
    const armed = engine.armTask(spec, run, null, state, tasks ?? new TaskSequence(), false, id);
    if (armed !== null) this.place(armed, tasks);
  }

  /**
   * Durable work, now, from any code: services, consumers, cron. Resolves once it is on disk (`spillPath`) or in the store.
   * @throws PERF_ERR_OFF, PERF_ERR_STORE, PERF_ERR_DEFER_WORK, PERF_ERR_OPTION, PERF_ERR_SERIALIZE, PERF_ERR_DEFER_FULL,
   * and what the store says when it refuses the work for good
   */
  async enqueue<T>(
    work: Type<DeferredWork<T> | DeferredBatchWork<T>>,
    data: T,
    options?: EnqueueOptions,
  ): Promise<{ id: string }> {
    const what = 'deferrer.enqueue()';
    const engine = this.enabled(what);
    if (typeof work !== 'function' || !isClass(work)) {
      throw new PerfError(
        'PERF_ERR_OPTION',
        `\`${what}\` takes a class, got ${typeof work}: a worker finds work by its class.`,
      );
    }
    if (options?.durable === false) {
      throw new PerfError(
        'PERF_ERR_OPTION',
        `\`${what}\` stores work: leave \`durable: false\` out, or use \`deferrer.defer()\`.`,
      );
    }
    const read = readEnqueueOptions({ ...options, durable: true }, what);
    const { kind } = this.worksOf(engine, work, true, what);
    const name = read.name ?? work.name;
    const shape = durableShape(engine, { ...read, name, work: work.name, batched: kind === 'batch' });
    const entry = durableEntry(read.id ?? engine.ids.next(), shape, data, this.current(), name);
    await engine.enqueue(entry);
    return { id: entry.id };
  }

  private worksOf(engine: DeferEngine, type: Type<AnyWork>, durable: boolean, what: string) {
    const { works } = this;
    if (works === null) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `\`${what}\` with a class works once the application has booted. Call it in \`onApplicationBootstrap\` or later.`,
      );
    }
    if (durable && engine.options.store === null) throw noStore(`${what} of ${type.name}`);
    const provide = works.provide(type, null, what);
    if (durable) works.nameForJobs(type, provide, what);
    return { provide, kind: works.kindOfClass(type) };
  }

  /**
   * Adds a job to your own BullMQ queue after the response, if its status is below 400. Jobs travel in micro-batches
   * under ids made here, so a batch that is sent again stores nothing twice. An own `jobId` in `options` is kept.
   * @throws PERF_ERR_SERIALIZE when `data` is no JSON, and what {@link defer} throws
   */
  addJob(queue: JobQueue, name: string, data: unknown, options?: object): void {
    const engine = this.ready('deferrer.addJob()');
    if (typeof queue?.addBulk !== 'function') {
      throw new PerfError('PERF_ERR_OPTION', '`deferrer.addJob()` takes a BullMQ queue: an object with `addBulk()`.');
    }
    const state = this.current();
    const armed = engine.armJob(queue, name, data, options, state);
    if (armed !== null) this.place(armed, state === null ? null : this.tasksOf(state));
  }

  /** Resolves when nothing is pending, running, or waiting to be stored, and no ended response still awaits its close. */
  async idle(): Promise<void> {
    const engine = this.enabled('deferrer.idle()');
    do {
      await this.requests.settled();
      await engine.idle();
    } while (!engine.isIdle);
  }

  /**
   * What queues and the store have refused for good, oldest first: with `spillPath` all durable work, else the newest
   * 1,000 of this process.
   * @throws PERF_ERR_OFF
   */
  rejected(): Promise<RejectedWork[]> {
    return this.enabled('deferrer.rejected()').rejected();
  }

  /**
   * Sends rejects again under their ids: those with these ids, or all. Resolves with how many there was room for.
   * @throws PERF_ERR_OFF
   */
  resend(ids?: readonly string[]): Promise<number> {
    return this.enabled('deferrer.resend()').resend(ids);
  }

  /** Counters since the application started. */
  stats(): DeferStats {
    return this.enabled('deferrer.stats()').stats();
  }

  /** What a request has armed. @internal */
  tasksOf(state: RequestState): RequestTasks {
    let tasks = REQUEST_TASKS.get(state);
    if (tasks === null) {
      tasks = new RequestTasks(this.enabled('deferrer').undecided);
      REQUEST_TASKS.set(state, tasks);
      // A handler may go on after its response has closed.
      if (state.closed) tasks.ended(state);
    }
    return tasks;
  }

  /** The request whose code calls this; null outside of one, or when it cannot be told. @internal */
  current(): RequestState | null {
    return currentRequest(this.requests);
  }

  /** Requests in flight. @internal */
  get inFlight(): number {
    return this.requests.inFlight;
  }

  /** A request has ended. @internal */
  ended(state: RequestState): void {
    REQUEST_TASKS.get(state)?.ended(state);
    for (const deferrer of runningDeferrers) if (deferrer.unplaced.length > 0) deferrer.runUnplaced();
  }

  /** @internal */
  endedElsewhere(state: RequestState): void {
    this.ended(state);
  }

  private place(armed: Armed, tasks: RequestTasks | null): void {
    if (tasks !== null) {
      tasks.arm(armed);
      return;
    }
    // Any of these may be the one that has called, of whichever application: none may still wait for its response.
    const before = [...runningDeferrers].flatMap(({ requests }) => {
      requests.enableContext();
      return requests.outsideContext();
    });
    if (before.length === 0) armed.commit(null);
    else this.unplaced.push({ armed, before });
  }

  private runUnplaced(): void {
    for (const { armed } of this.unplaced.filter(({ before }) => before.every(({ closed }) => closed))) {
      this.unplaced = this.unplaced.filter((other) => other.armed !== armed);
      armed.commit(null);
    }
  }

  private ready(what: string): DeferEngine {
    const engine = this.enabled(what);
    if (!this.requests.contextAllowed) throw contextOff(what);
    return engine;
  }

  private enabled(what: string): DeferEngine {
    if (this.engine === null) throw off(what);
    return this.engine;
  }
}

/** Deferred work is switched off. */
export function off(what: string): PerfError {
  return new PerfError(
    'PERF_ERR_OFF',
    `\`${what}\` needs deferred work, which is switched off. Remove \`defer: false\` from PerfModule.forRoot().`,
  );
}

/** Durable work without a store. */
export function noStore(what: string): PerfError {
  return new PerfError(
    'PERF_ERR_STORE',
    `${what} is durable, but \`defer.store\` is not set. ` +
      "Pass `defer: { store: bullmqStore({ connection }) }` from 'nestjs-perf/bullmq'.",
  );
}

/** Armed once it is on disk, which may be after its request has been decided. */
function committedLater(armed: Promise<Armed | null>): Armed {
  return {
    when: null,
    commit: (status) => void armed.then((it) => it?.commit(status)),
    discard: () => void armed.then((it) => it?.discard()),
  };
}

/** Nobody knows which request this is. */
export function contextOff(what: string): PerfError {
  return new PerfError(
    'PERF_ERR_CONTEXT_OFF',
    `\`${what}\` cannot tell which request it runs in, because the context store may not be used. Remove \`context: false\` from PerfModule.forRoot().`,
  );
}
