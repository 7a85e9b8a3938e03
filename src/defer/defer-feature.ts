import type { Type } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import type { DeferredRecord } from '../core/record.js';
import type { OncePerCause } from '../core/reporter.js';
import type { RequestState } from '../core/request-state.js';
import type { DeferStats } from '../core/snapshot.js';
import { PerfError } from '../core/perf.error.js';
import type { AroundFactory, ControllerHandlers, HandlerSite } from '../http/controller-handlers.js';
import type { RequestLifecycle } from '../http/request-lifecycle.js';
import { DeferEngine } from './defer-engine.js';
import { worksOn, type DeclaredWork } from './handlers/defer-work.decorator.js';
import type { ResolvedDeferOptions } from './defer.options.js';
import { Deferrer, off, type DeferRequests } from './deferrer.js';
import type { DurableStoreHost } from './durable/durable-store.js';
import { durableWorker } from './durable/durable-worker.js';
import { HandlerWorks, type PlannedWork } from './handlers/handler-works.js';
import { refuseStrayWork } from './handlers/stray-work.js';
import { WorkProviders } from './handlers/work-providers.js';

/** Deferred work, wired to one application's requests. Exists with the feature off as well, to say so. */
export class DeferFeature {
  readonly deferrer: Deferrer;
  private readonly engine: DeferEngine | null;
  private readonly requests: DeferRequests;
  private run: DurableStoreHost['run'] | null = null;

  constructor(
    private readonly options: ResolvedDeferOptions | null,
    private readonly lifecycle: RequestLifecycle,
    publish: ((record: DeferredRecord) => void) | null,
    report: OncePerCause,
  ) {
    this.engine = options === null ? null : new DeferEngine(options, publish, report);
    // Until the application starts nobody can be in a request.
    this.requests = { owner: lifecycle, contextEnabled: true, settled: () => lifecycle.settled() };
    this.deferrer = new Deferrer(this.engine, this.requests);
  }

  /**
   * Before handlers are placed and routes are registered.
   * @throws PERF_ERR_OFF, PERF_ERR_STORE, PERF_ERR_DEFER_WORK, PERF_ERR_DECORATOR naming the handler (when it is placed)
   */
  install(handlers: ControllerHandlers, modules: ModulesContainer, contextEnabled: boolean): void {
    this.requests.contextEnabled = contextEnabled;
    const { engine } = this;
    if (engine === null) {
      handlers.around((site) => {
        if (declaredOn(site).length > 0) throw off(`@DeferWork on ${site.handler.name}`);
        return null;
      });
      return;
    }
    this.lifecycle.deferrer = this.deferrer;
    const providers = new WorkProviders(modules);
    handlers.around(this.plan(engine, providers));
    refuseStrayWork(modules);
    this.run = durableWorker((name) => providers.find(name), engine.ledger);
  }

  /**
   * Opens the store and lets its worker begin: when every module has been initialised, before the server listens.
   * @throws PERF_ERR_MISSING_PEER, PERF_ERR_STORE
   */
  async start(): Promise<void> {
    if (this.engine !== null && this.run !== null) await this.engine.start(this.run);
  }

  stats(): DeferStats | null {
    return this.engine?.stats() ?? null;
  }

  async idle(): Promise<void> {
    if (this.engine !== null) await this.deferrer.idle();
  }

  /** Finishes or hands over what was accepted, within `defer.drainTimeoutMs`. */
  async drain(): Promise<void> {
    if (this.engine !== null && this.options !== null) await this.engine.drain(this.options.drainTimeoutMs);
  }

  private plan(engine: DeferEngine, providers: WorkProviders): AroundFactory {
    const works = new HandlerWorks(engine, (state: RequestState) => this.deferrer.tasksOf(state));
    return (site) => {
      const declared = declaredOn(site);
      if (declared.length === 0) return null;
      const planned = declared.map((work) => planOne(work, site, providers, this.options?.store !== null));
      return works.around(planned, site.sendsEvents);
    };
  }
}

/** The controller's before the handler's. */
const declaredOn = ({ controller, method }: HandlerSite): DeclaredWork[] => [
  ...worksOn(controller),
  ...worksOn(method),
];

function planOne(work: DeclaredWork, site: HandlerSite, providers: WorkProviders, hasStore: boolean): PlannedWork {
  const handler = site.handler.name;
  if (work.kind === 'function') {
    const name = work.name ?? (work.run.name || handler);
    return { ...work, name, handler, provide: null, place: `${name} of "${handler}"` };
  }
  const type: Type = work.type;
  if (work.durable && !hasStore) {
    throw new PerfError(
      'PERF_ERR_STORE',
      `"${handler}" defers to ${type.name} with \`durable: true\`, but \`defer.store\` is not set. ` +
        "Pass `defer: { store: bullmqStore({ connection }) }` from 'nestjs-perf/bullmq'.",
    );
  }
  const provide = providers.provide(work.type, site.controller, handler);
  if (work.durable) providers.nameForJobs(work.type, provide, handler);
  const name = work.name ?? type.name;
  return { ...work, name, handler, provide, place: `${name} of "${handler}"` };
}
