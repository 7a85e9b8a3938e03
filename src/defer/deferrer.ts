import { PerfError } from '../core/perf.error.js';
import { requestContext } from '../core/request-context.js';
import type { RequestOwner, RequestState } from '../core/request-state.js';
import type { DeferStats } from '../core/snapshot.js';
import type { DeferEngine } from './defer-engine.js';
import type { DeferInfo, DeferWorkOptions, JobQueue } from './deferred-work.js';
import { RequestTasks } from './request-tasks.js';
import { TaskSequence } from './tasks/task.js';
import { readWorkOptions } from './work-options.js';

/** What a {@link Deferrer} needs of the application's requests. */
export interface DeferRequests {
  readonly owner: RequestOwner;
  /** False when requests cannot be told apart, because the context store is off. */
  contextEnabled: boolean;
  /** Resolves when no request whose response has been ended still awaits its close. */
  settled(): Promise<void>;
}

/**
 * Defers work until the response of the current request has ended. Injectable everywhere; who injects it switches the
 * context store on (`context: 'auto'`). With `defer: false` every method throws `PERF_ERR_OFF`.
 */
export class Deferrer {
  /** @internal */
  constructor(
    private readonly engine: DeferEngine | null,
    private readonly requests: DeferRequests,
  ) {}

  /**
   * Runs `task` once the response has ended or the client has gone; outside a request on the next turn of the event loop.
   * @throws PERF_ERR_OFF, PERF_ERR_CONTEXT_OFF, PERF_ERR_OPTION, PERF_ERR_DEFER_FULL (with `overflow: 'reject'`)
   */
  defer(task: (info: DeferInfo) => unknown, options?: Omit<DeferWorkOptions, 'durable'>): void {
    const engine = this.ready('deferrer.defer()');
    if (typeof task !== 'function') {
      throw new PerfError('PERF_ERR_OPTION', `\`deferrer.defer()\` takes a function, got ${typeof task}.`);
    }
    const { name, when, timeoutMs, attempts, durable } = readWorkOptions(options, 'deferrer.defer()');
    if (durable) {
      throw new PerfError(
        'PERF_ERR_OPTION',
        '`deferrer.defer()` cannot make a function durable: a worker finds work by its class. Use `@DeferWork(SomeClass, { durable: true })`.',
      );
    }
    const state = this.current();
    const tasks = state === null ? null : this.tasksOf(state);
    const label = name ?? (task.name || (state?.route?.handler?.name ?? 'deferred task'));
    const spec = { name: label, timeoutMs, attempts };
    const armed = engine.armTask(spec, task, when, state, tasks ?? new TaskSequence());
    if (armed === null) return;
    if (tasks === null) armed.commit(null);
    else tasks.arm(armed);
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
    if (armed === null) return;
    if (state === null) armed.commit(null);
    else this.tasksOf(state).arm(armed);
  }

  /** Resolves when nothing is pending, running, or waiting to be stored, and no ended response still awaits its close. */
  async idle(): Promise<void> {
    const engine = this.enabled('deferrer.idle()');
    do {
      await this.requests.settled();
      await engine.idle();
    } while (!engine.ledger.idle);
  }

  /** Counters since the application started. */
  stats(): DeferStats {
    return this.enabled('deferrer.stats()').stats();
  }

  /** What a request has armed. @internal */
  tasksOf(state: RequestState): RequestTasks {
    let tasks = state.deferred as RequestTasks | null;
    if (tasks === null) {
      tasks = new RequestTasks(this.enabled('deferrer').undecided);
      state.deferred = tasks;
      // A handler may go on after its response has closed.
      if (state.closed) tasks.ended(state);
    }
    return tasks;
  }

  private current(): RequestState | null {
    const state = requestContext.getStore();
    return state !== undefined && state.owner === this.requests.owner ? state : null;
  }

  private ready(what: string): DeferEngine {
    const engine = this.enabled(what);
    if (!this.requests.contextEnabled) throw contextOff(what);
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

/** Nobody knows which request this is. */
export function contextOff(what: string): PerfError {
  return new PerfError(
    'PERF_ERR_CONTEXT_OFF',
    `\`${what}\` cannot tell which request it runs in, because the context store is off. Set \`context: true\` in PerfModule.forRoot().`,
  );
}
