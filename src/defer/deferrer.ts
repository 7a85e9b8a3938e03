import type { Type } from '@nestjs/common';
import { entryOf } from '../core/entry-of.js';
import { holdingProcess } from '../core/held-process.js';
import { PerfError } from '../core/perf.error.js';
import { pushBounded } from '../core/push-bounded.js';
import { currentRequest, requestContext, type RequestState } from '../request/request-state.js';
import type { DeferStats } from '../core/snapshot.js';
import type { RequestTracker } from '../request/tracker.js';
import type { Declaration } from './decorator/defer-work.decorator.js';
import type { HandlerWorks } from './decorator/handler-works.js';
import { mergeWorkOptions } from './decorator/durable-work.decorator.js';
import { isClass, noStoreError, type AnyWork, type ClassWork, type WorkProviders } from './decorator/work-providers.js';
import type { DeferEngine } from './defer-engine.js';
import type {
  DeferInfo,
  DeferredBatchWork,
  DeferredWork,
  DeferWhen,
  DeferWorkOptions,
  EnqueueOptions,
  JobQueue,
} from './deferred-work.js';
import type { RejectedWork } from './spill/dead-letters.js';
import { holdEnd, RequestWork } from './request-work.js';
import { TaskSequence, type Armed } from './tasks/task.js';
import { readEnqueueOptions, readWorkOptions } from './work-options.js';
import { isThenable } from '../core/thenable.js';

/** Says nothing of what T is: `NoInfer`, which TypeScript has from 5.4 on. */
type GivenFor<T> = [T][T extends unknown ? 0 : never];

/** Deferrers of the applications that run in this process: `defer()` outside a request has no application. */
export const runningDeferrers = new Set<Deferrer>();

export const offError = (what: string): PerfError =>
  new PerfError(
    'PERF_ERR_OFF',
    `\`${what}\` needs deferred work, which is switched off. Remove \`defer: false\` from PerfModule.forRoot(), and \`defer\` from the environment variable NESTJS_PERF_OFF.`,
  );

const NOBODY_RUNS =
  '`defer()` needs an application that imports PerfModule and has booted, and none runs in this process. ' +
  'Call it within a request, or between the end of the boot and `app.close()`.';

const ENQUEUE = 'deferrer.enqueue()';
/** A stream may enqueue for hours. */
const MAX_COMMITTED = 1_000;

const misuse = (message: string): PerfError => new PerfError('PERF_ERR_OPTION', message);

/** Defers work until the response of the current request has ended. With `defer: false` every method throws `PERF_ERR_OFF`. */
export class Deferrer {
  /** The application's providers, once it has booted. @internal */
  works: WorkProviders | null = null;
  /** @internal */
  booted = false;
  /** Null with the feature off. @internal */
  handlers: HandlerWorks | null = null;
  /** By the method that is called, and by class: what calls without options share. */
  private readonly planned = new Map<string, Map<Type<AnyWork>, ClassWork>>();

  /** @internal */
  constructor(
    private readonly engine: DeferEngine | null,
    private readonly requests: RequestTracker,
  ) {}

  /**
   * Runs `task` once the response has ended or the client has gone; outside a request on the next turn of the event loop.
   * @throws PERF_ERR_OFF, PERF_ERR_OPTION, PERF_ERR_DEFER_FULL (with `overflow: 'reject'`)
   */
  defer(task: (info: DeferInfo) => unknown, options?: Omit<DeferWorkOptions, 'durable'>): void;
  /**
   * Runs a class that a module provides in the same way, with `data` for its `run` or `runBatch`; `prepare` is not called.
   * With `durable: true` it goes through `defer.store` once the response has ended.
   * @throws PERF_ERR_DEFER_WORK, PERF_ERR_STORE, PERF_ERR_SERIALIZE, and what the function form throws
   */
  defer<T>(work: Type<DeferredWork<T> | DeferredBatchWork<T>>, data: GivenFor<T>, options?: EnqueueOptions): void;
  defer(work: Type<AnyWork> | ((info: DeferInfo) => unknown), ...more: [unknown?, EnqueueOptions?]): void {
    const engine = this.enabled('deferrer.defer()');
    if (typeof work !== 'function') {
      throw misuse(`\`deferrer.defer()\` takes a function or a class, got ${typeof work}.`);
    }
    if (isClass(work)) return this.deferClass(engine, work, more[0], more[1]);
    const read = readWorkOptions(more[0] as DeferWorkOptions | undefined, 'deferrer.defer()');
    if (read.durable) {
      throw misuse(
        '`deferrer.defer()` cannot make a function durable: a worker finds work by its class. Pass a class, and its data.',
      );
    }
    const { origin, arming, requestWork } = this.findCaller(read.when);
    const name = read.name ?? (work.name || (origin?.route?.handler?.name ?? 'deferred task'));
    this.place(
      engine.armTask({ ...read, name }, ({ info }) => work(info), arming),
      requestWork,
    );
  }

  private deferClass(engine: DeferEngine, type: Type<AnyWork>, data: unknown, options?: EnqueueOptions): void {
    const work = this.classWork(engine, type, options, 'deferrer.defer()');
    const { origin, arming, requestWork } = this.findCaller(null);
    const instance = work.durable ? null : work.provide(origin?.frameworkRequest);
    // A failure to make it is reported when it runs.
    if (isThenable(instance)) instance.catch(() => {});
    this.place(engine.armClass(work, instance!, data, arming), requestWork);
  }

  private findCaller(when: DeferWhen | null) {
    const origin = currentRequest(this.requests);
    const requestWork = origin === null ? null : this.getRequestWork(origin);
    const arming = { when, origin, sequence: requestWork ?? new TaskSequence() };
    return { origin, requestWork, arming };
  }

  /**
   * Durable work, now, from any code: services, consumers, cron. Resolves once it is on disk (`spillPath`) or in the store.
   * @throws PERF_ERR_OFF, PERF_ERR_STORE, PERF_ERR_DEFER_WORK, PERF_ERR_OPTION, PERF_ERR_SERIALIZE, PERF_ERR_DEFER_FULL,
   * and the store's error when it refuses the work for good: within a minute, where nothing else gets through
   */
  async enqueue<T>(
    work: Type<DeferredWork<T> | DeferredBatchWork<T>>,
    data: GivenFor<T>,
    options?: EnqueueOptions,
  ): Promise<{ id: string }> {
    const what = ENQUEUE;
    const engine = this.enabled(what);
    if (typeof work !== 'function' || !isClass(work)) {
      throw misuse(`\`${what}\` takes a class, got ${typeof work}: a worker finds work by its class.`);
    }
    if (options?.durable === false) {
      throw misuse(`\`${what}\` stores work: leave \`durable: false\` out, or use \`deferrer.defer()\`.`);
    }
    const planned = this.classWork(engine, work, options, what);
    const origin = currentRequest(this.requests);
    const id = await engine.enqueue(planned, data, origin);
    if (origin !== null) pushBounded(this.getRequestWork(origin).committed, planned.name, MAX_COMMITTED);
    return { id };
  }

  private classWork(
    engine: DeferEngine,
    type: Type<AnyWork>,
    options: EnqueueOptions | undefined,
    what: string,
  ): ClassWork {
    const known = options === undefined ? this.planned.get(what)?.get(type) : undefined;
    if (known !== undefined) return known;
    const given = what === ENQUEUE ? { ...options, durable: true } : options;
    const { when: _, ...own } = mergeWorkOptions(type, given) ?? {};
    const read = readEnqueueOptions(own, what);
    if (this.works === null) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `\`${what}\` with a class works once the application has booted. Call it in \`onApplicationBootstrap\` or later.`,
      );
    }
    if (read.durable && engine.durable === null) throw noStoreError(`${what} of ${type.name} is durable`);
    const provided = this.works.provide(type, null, what, read.durable);
    const name = read.name ?? provided.durableName ?? type.name;
    const work = { ...read, ...provided, type, name, place: name };
    if (options === undefined) entryOf(this.planned, what, () => new Map()).set(type, work);
    return work;
  }

  /**
   * Adds a job to your own BullMQ queue after the response, if its status is below 400. Jobs travel in micro-batches
   * under ids made here, so a batch that is sent again stores nothing twice. An own `jobId` in `options` is kept.
   * @throws PERF_ERR_SERIALIZE when `data` is no JSON, and what {@link defer} throws
   */
  addJob(queue: JobQueue, name: string, data: unknown, options?: object): void {
    const engine = this.enabled('deferrer.addJob()');
    if (typeof queue?.addBulk !== 'function') {
      throw misuse('`deferrer.addJob()` takes a BullMQ queue: an object with `addBulk()`.');
    }
    const { requestWork, arming } = this.findCaller(null);
    this.place(engine.armJob(queue, name, data, options, arming), requestWork);
  }

  /** Resolves when nothing is pending, running, or waiting to be stored, and no ended response still awaits its close. */
  async idle(): Promise<void> {
    const engine = this.enabled('deferrer.idle()');
    await holdingProcess(async () => {
      do {
        await this.requests.settled();
        await engine.idle();
      } while (!engine.counters.idle);
    });
  }

  /**
   * Dead letters: what the store has refused for good, oldest first, 100 from `offset` on; `{ offset: -10 }` are the newest 10. The newest 1,000
   * are kept, up to 16 MiB of their data, with `spillPath` also over a restart.
   * @param page `{ offset: 0, limit: 100 }`
   * @throws PERF_ERR_OFF
   */
  rejected(page?: { offset?: number; limit?: number }): Promise<RejectedWork[]> {
    return this.enabled('deferrer.rejected()').rejected(page);
  }

  /**
   * Sends dead letters again under their ids: those with these ids, or all. Resolves with how many there was room for.
   * @throws PERF_ERR_OFF
   */
  resend(ids?: readonly string[]): Promise<number> {
    return this.enabled('deferrer.resend()').resend(ids);
  }

  /** Counters since the application started. */
  stats(): DeferStats {
    return this.enabled('deferrer.stats()').stats();
  }

  /** Work that a request has armed. @internal */
  getRequestWork(state: RequestState): RequestWork {
    if (state.work !== null) return state.work as RequestWork;
    const work = new RequestWork(this.enabled('deferrer').undecided);
    state.work = work;
    // A handler may go on after its response has closed.
    if (state.closed) work.ended(state);
    return work;
  }

  /** Runs a handler that a `@DeferWork` has wrapped. @internal */
  runHandler(declaration: Declaration, controller: unknown, state: RequestState, proceed: () => unknown): unknown {
    if (this.handlers === null) throw offError(`@DeferWork on ${declaration.method.name}`);
    return this.handlers.run(declaration, controller, state, this.getRequestWork(state), proceed);
  }

  /**
   * The deferrer of the current request's application; outside a request that of the application that booted first.
   * One whose boot has failed never starts, and is never closed. @throws PERF_ERR_OFF @internal
   */
  static findForCaller(): Deferrer {
    const owner = requestContext.getStore()?.owner;
    const all = [...runningDeferrers].filter(({ requests }) => owner === undefined || requests === owner);
    const found = all.find(({ engine, booted }) => engine !== null && booted) ?? all[0];
    if (found === undefined) throw new PerfError('PERF_ERR_OFF', NOBODY_RUNS);
    if (found.engine === null) throw offError('defer()');
    return found;
  }

  /** A request has ended. @internal */
  ended(state: RequestState): void {
    state.work?.ended(state);
  }

  private place(armed: Armed | null, requestWork: RequestWork | null): void {
    if (armed === null) return;
    if (requestWork === null) return armed.commit(null);
    requestWork.arm(armed);
    const response = currentRequest(this.requests)?.response ?? null;
    if (armed.written !== undefined && response !== null) holdEnd(response, requestWork);
  }

  private enabled(what: string): DeferEngine {
    if (this.engine === null) throw offError(what);
    return this.engine;
  }
}

/**
 * {@link Deferrer.defer} without injection: after the response of the current request, or on the next turn outside of one.
 * @throws PERF_ERR_OFF where no application runs, and what `deferrer.defer()` throws
 */
export function defer(task: (info: DeferInfo) => unknown, options?: Omit<DeferWorkOptions, 'durable'>): void {
  Deferrer.findForCaller().defer(task, options);
}
