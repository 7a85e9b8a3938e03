import type { Type } from '@nestjs/common';
import { holdingProcess } from '../core/held-process.js';
import { optionError } from '../core/option.js';
import { PerfError } from '../core/perf.error.js';
import { pushBounded } from '../core/push-bounded.js';
import { currentRequest, requestContext, type RequestState } from '../request/request-state.js';
import type { DeferStats } from '../core/snapshot.js';
import type { RequestTracker } from '../request/tracker.js';
import { mergeWorkOptions } from './decorator/durable-work.decorator.js';
import { isClass, type AnyWork, type ClassWork, type WorkProviders } from './decorator/work-providers.js';
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
import { makeDurableEntry } from './durable/entry.js';
import type { RejectedWork } from './spill/dead-letters.js';
import { openRequestWork } from './request-work.js';
import type { Armed } from './item.js';
import { TaskSequence, type Arming } from './tasks/task.js';
import { readEnqueueOptions, readWorkOptions } from './work-options.js';
import { isThenable } from '../core/thenable.js';

/** `NoInfer`, which TypeScript has from 5.4 on only: T comes from the class alone. */
type GivenFor<T> = [T][T extends unknown ? 0 : never];

/** Deferrers of the applications that run in this process: `defer()` outside a request has no application. */
export const runningDeferrers = new Set<Deferrer>();

export const offError = (what: string): PerfError =>
  new PerfError(
    'PERF_ERR_OFF',
    `\`${what}\` needs deferred work, which is switched off. Remove \`defer: false\` from PerfModule.forRoot().`,
  );

const NO_APPLICATION =
  '`defer()` needs an application that imports PerfModule and has booted, and none runs in this process. ' +
  'Call it within a request, or between the end of the boot and `app.close()`.';

const DEFER = 'deferrer.defer()';
const ENQUEUE = 'deferrer.enqueue()';
/** Names of enqueued work that a request retains for `expectWork()`: a stream may enqueue for hours. */
const MAX_COMMITTED = 1_000;

const misuse = (message: string): PerfError => new PerfError('PERF_ERR_OPTION', message);

/** Defers work until the response of the current request has ended. With `defer: false` every method throws `PERF_ERR_OFF`. */
export class Deferrer {
  /** The application's providers, once it has booted. @internal */
  works: WorkProviders | null = null;
  /** @internal */
  booted = false;
  /** Plans of calls without options, by method and class. */
  private readonly planned = { [DEFER]: new Map<Type, ClassWork>(), [ENQUEUE]: new Map<Type, ClassWork>() };

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
    const engine = this.requireEngine(DEFER);
    if (typeof work !== 'function') throw misuse(`\`${DEFER}\` takes a function or a class, got ${typeof work}.`);
    if (isClass(work)) {
      const planned = this.planClass(work, more[1], DEFER);
      this.arm(planned.when, (arming) => {
        const instance = planned.durable ? null : planned.provide(arming.origin?.frameworkRequest);
        // A class that cannot be instantiated is reported when the task runs.
        if (isThenable(instance)) instance.catch(() => {});
        return engine.armClass(planned, instance!, more[0], arming);
      });
      return;
    }
    const read = readWorkOptions(more[0] as DeferWorkOptions | undefined, DEFER);
    if (read.durable) {
      throw misuse(
        `\`${DEFER}\` cannot make a function durable: a worker finds work by its class. Pass a class, and its data.`,
      );
    }
    this.arm(read.when, (arming) => {
      const name = read.name ?? (work.name || (arming.origin?.route?.handler?.name ?? 'deferred task'));
      return engine.armTask({ ...read, name }, ({ info }) => work(info), arming);
    });
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
    const engine = this.requireEngine(ENQUEUE);
    if (typeof work !== 'function' || !isClass(work)) {
      throw misuse(`\`${ENQUEUE}\` takes a class, got ${typeof work}: a worker finds work by its class.`);
    }
    if (options?.durable === false) {
      throw misuse(`\`${ENQUEUE}\` stores work: leave \`durable: false\` out, or use \`${DEFER}\`.`);
    }
    const planned = this.planClass(work, options, ENQUEUE);
    const origin = currentRequest(this.requests);
    const entry = makeDurableEntry(planned, data, origin);
    await engine.durable!.enqueue(entry);
    if (origin !== null) pushBounded(openRequestWork(origin, engine.undecided).committed, planned.name, MAX_COMMITTED);
    return { id: entry.id };
  }

  private planClass(
    type: Type<AnyWork>,
    options: EnqueueOptions | undefined,
    what: typeof DEFER | typeof ENQUEUE,
  ): ClassWork {
    const known = options === undefined ? this.planned[what].get(type) : undefined;
    if (known !== undefined) return known;
    const { when, ...others } =
      mergeWorkOptions(type, what === ENQUEUE ? { ...options, durable: true } : options) ?? {};
    // `@DurableWork()` may have it; in the options of a call it is unknown.
    const own = options !== undefined && 'when' in options ? { ...others, when } : others;
    const read = { ...readEnqueueOptions(own, what), when: when ?? null };
    if (this.works === null) {
      throw new PerfError(
        'PERF_ERR_DEFER_WORK',
        `\`${what}\` with a class works once the providers are known. Call it in \`onModuleInit\` or later.`,
      );
    }
    const work = this.works.plan(type, read, what, null);
    if (options === undefined) this.planned[what].set(type, work);
    return work;
  }

  /**
   * Adds a job to your own BullMQ queue after the response, if its status is below 400. Jobs travel in micro-batches
   * under ids made here, so a batch that is sent again stores nothing twice. An own `jobId` in `options` is kept. A job that the queue
   * has not taken for 10 minutes is dropped: counted, recorded and reported.
   * @throws PERF_ERR_SERIALIZE when `data` is no JSON, and what {@link defer} throws
   */
  addJob(queue: JobQueue, name: string, data: unknown, options?: object): void {
    const engine = this.requireEngine('deferrer.addJob()');
    if (typeof queue?.addBulk !== 'function') {
      throw misuse('`deferrer.addJob()` takes a BullMQ queue: an object with `addBulk()`.');
    }
    if (typeof name !== 'string' || name === '') throw optionError('deferrer.addJob() name', 'the name of a job', name);
    this.arm(null, (arming) => engine.armJob(queue, name, data, options, arming.origin));
  }

  /** Resolves when nothing is pending, running, or waiting to be stored, and no ended response still awaits its close. */
  async idle(): Promise<void> {
    const { counters } = this.requireEngine('deferrer.idle()');
    await holdingProcess(async () => {
      do {
        await this.requests.settled();
        await counters.whenIdle();
      } while (!counters.idle);
    });
  }

  /**
   * Dead letters: what the store has refused for good, oldest first, 100 from `offset` on; `{ offset: -10 }` are the newest 10. The newest 1,000
   * are kept, up to 16 MiB of their data; with `spillPath` the next start sends them once more.
   * @param page `{ offset: 0, limit: 100 }`
   * @throws PERF_ERR_OFF
   */
  async rejected(page?: { offset?: number; limit?: number }): Promise<RejectedWork[]> {
    return this.requireEngine('deferrer.rejected()').durable?.dead.list(page?.offset, page?.limit) ?? [];
  }

  /** Sends dead letters again under their ids: those with these ids, or all. Resolves with how many there was room for. @throws PERF_ERR_OFF */
  async resend(ids?: readonly string[]): Promise<number> {
    return (await this.requireEngine('deferrer.resend()').durable?.resend(ids)) ?? 0;
  }

  /** Counters since the application started. */
  stats(): DeferStats {
    return this.requireEngine('deferrer.stats()').stats();
  }

  /** Arms work in the current request; outside of one it is committed at once. */
  private arm(when: DeferWhen | null, arm: (arming: Arming & { origin: RequestState | null }) => Armed | null): void {
    const origin = currentRequest(this.requests);
    const requestWork = origin && openRequestWork(origin, this.engine!.undecided);
    const armed = arm({ when, origin, sequence: requestWork?.sequence ?? new TaskSequence() });
    if (requestWork === null) return armed?.commit(null);
    if (armed === null) return;
    requestWork.arm(armed);
    if (armed.written !== undefined && origin!.response !== null) requestWork.delayEnd(origin!.response);
  }

  private requireEngine(what: string): DeferEngine {
    if (this.engine === null) throw offError(what);
    return this.engine;
  }

  /**
   * The deferrer of the current request's application; outside a request that of the application that booted first.
   * One whose boot has failed never starts, and is never closed. @throws PERF_ERR_OFF @internal
   */
  static findForCaller(): Deferrer {
    const owner = requestContext.getStore()?.owner;
    const all = [...runningDeferrers].filter(({ requests }) => owner === undefined || requests === owner);
    const found = all.find(({ engine, booted }) => engine?.closed === false && booted) ?? all[0];
    if (found === undefined) throw new PerfError('PERF_ERR_OFF', NO_APPLICATION);
    if (found.engine === null) throw offError('defer()');
    return found;
  }
}

/**
 * {@link Deferrer.defer} without injection: after the response of the current request, or on the next turn outside of one.
 * @throws PERF_ERR_OFF where no application runs, and what `deferrer.defer()` throws
 */
export function defer(task: (info: DeferInfo) => unknown, options?: Omit<DeferWorkOptions, 'durable'>): void {
  Deferrer.findForCaller().defer(task, options);
}
