import type { Type } from '@nestjs/common';
import type { RequestState } from '../core/request-state.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import { PerfError } from '../core/perf.error.js';
import type { Feature, FeatureBoot, FeatureDefinition, FeatureHost } from '../http/feature.js';
import type { AroundFactory, HandlerSite } from '../http/handlers.js';
import { DeferEngine } from './defer-engine.js';
import { worksOn, type DeclaredWork } from './handlers/defer-work.decorator.js';
import { deferOption, type ResolvedDeferOptions } from './defer.options.js';
import { Deferrer, DEFERRER, off, runningDeferrers } from './deferrer.js';
import { DurableWorker } from './durable/durable-worker.js';
import { HandlerWorks, type PlannedWork } from './handlers/handler-works.js';
import { refuseStrayWork } from './handlers/stray-work.js';
import { WorkProviders } from './handlers/work-providers.js';

/** Deferred work, wired to one application's requests. Exists with the feature off as well, to say so. */
class DeferFeature implements Feature {
  readonly service: Deferrer;
  private readonly engine: DeferEngine | null;
  private readonly queues = new Set<string>();

  constructor(
    private readonly options: ResolvedDeferOptions | null,
    private readonly host: FeatureHost,
  ) {
    const { recorder, report, requests } = host;
    const publish = recorder.wanted ? recorder.push.bind(recorder) : null;
    this.engine = options === null ? null : new DeferEngine(options, publish, report);
    this.service = new Deferrer(this.engine, requests);
  }

  /** @throws PERF_ERR_OFF, PERF_ERR_STORE, PERF_ERR_MISSING_PEER, PERF_ERR_DEFER_WORK, PERF_ERR_DECORATOR naming the handler (when it is placed) */
  async install({ modules }: FeatureBoot): Promise<void> {
    const { handlers, requests } = this.host;
    const { engine } = this;
    if (engine === null) {
      handlers.around((site) => {
        if (declaredOn(site).length > 0) throw off(`@DeferWork on ${site.handler.name}`);
        return null;
      });
      return;
    }
    DEFERRER.set(requests, this.service);
    runningDeferrers.add(this.service);
    requests.observe(this.service);
    const providers = new WorkProviders(modules);
    handlers.around(this.plan(engine, providers));
    refuseStrayWork(modules);
    this.service.works = providers;
    const worker = new DurableWorker(providers, engine.ledger);
    const { queues } = this;
    await engine.start({
      run: (job, attempt, signal) => worker.run(job, attempt, signal),
      runBatch: (jobs, attempt, signal) => worker.runBatch(jobs, attempt, signal),
      kindOf: (work) => worker.kindOf(work),
      queues: () => [...queues],
    });
  }

  start(): void {
    this.engine?.startWorker();
  }

  snapshot(): Pick<PerfSnapshot, 'defer'> {
    return { defer: this.engine?.stats() ?? null };
  }

  async idle(): Promise<void> {
    if (this.engine !== null) await this.service.idle();
  }

  /** Takes no durable work from the store any more. */
  async closing(): Promise<void> {
    await this.engine?.pauseWorker();
  }

  /** Finishes or hands over what was accepted, within `defer.drainTimeoutMs`. */
  async drain(): Promise<void> {
    runningDeferrers.delete(this.service);
    if (this.engine !== null && this.options !== null) await this.engine.drain(this.options.drainTimeoutMs);
  }

  private plan(engine: DeferEngine, providers: WorkProviders): AroundFactory {
    const works = new HandlerWorks(engine, (state: RequestState) => this.service.tasksOf(state));
    return (site) => {
      const declared = declaredOn(site);
      if (declared.length === 0) return null;
      const planned = declared.map((work) => planOne(work, site, providers, this.options?.store !== null));
      const warning = tooMany(planned, this.options, engine.journaled);
      if (warning !== null) this.host.logger.warn(warning);
      for (const { queue } of declared) if (queue !== null) this.queues.add(queue);
      return works.around(planned, site.sendsEvents);
    };
  }
}

/** The controller's before the handler's. */
const declaredOn = ({ controller, method }: HandlerSite): DeclaredWork[] => [
  ...worksOn(controller),
  ...worksOn(method),
];

/** A handler that asks for more room than there is: null, or what to say. */
function tooMany(
  works: readonly PlannedWork[],
  options: ResolvedDeferOptions | null,
  journaled: boolean,
): string | null {
  if (options?.overflow !== 'reject') return null;
  const counted = journaled ? works.filter(({ durable }) => !durable) : works;
  const count = Math.max(...[false, true].map((durable) => counted.filter((work) => work.durable === durable).length));
  return count <= options.maxPending
    ? null
    : `"${works[0]!.handler}" defers ${count} pieces of work, but \`defer.maxPending\` is ${options.maxPending}: ` +
        "with `overflow: 'reject'` each of its requests gets 503. Raise it.";
}

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

export const deferFeature: FeatureDefinition<'defer', ResolvedDeferOptions> = {
  name: 'defer',
  option: deferOption,
  create: (options, host) => new DeferFeature(options, host),
};
