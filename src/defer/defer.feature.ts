import { REJECTED } from '../core/rejected.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { Feature, FeatureBoot, FeatureDefinition, FeatureHost } from '../http/feature.js';
import { bringHandlerInterceptor } from '../http/handler.interceptor.js';
import type { AroundFactory, HandlerSite } from '../http/handlers.js';
import { DeferEngine } from './defer-engine.js';
import { refuseStrayWork, worksOn, type DeclaredWork } from './decorator/defer-work.decorator.js';
import { deferOption, type ResolvedDeferOptions } from './defer.options.js';
import { Deferrer, DEFERRER, noStore, off, runningDeferrers } from './deferrer.js';
import { DurableWorker } from './durable/durable-worker.js';
import { HandlerWorks, type PlannedWork } from './decorator/handler-works.js';
import { WorkProviders } from './decorator/work-providers.js';

/** Deferred work, wired to one application's requests. Exists with the feature off as well, to say so. */
class DeferFeature implements Feature {
  readonly service: Deferrer;
  private readonly engine: DeferEngine | null;
  private readonly queues = new Set<string>();

  constructor(
    options: ResolvedDeferOptions | null,
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
    DEFERRER.set(requests, this.service);
    runningDeferrers.add(this.service);
    if (engine === null) {
      handlers.around((site) => {
        if (declaredOn(site).length > 0) throw off(`@DeferWork on ${site.handler.name}`);
        return null;
      });
      return;
    }
    REJECTED.set(requests, () => engine.rejected());
    requests.observe(this.service);
    const say = (cause: string, message: string): void => this.host.report.report(cause, message);
    const providers = new WorkProviders(modules, say);
    handlers.around(this.plan(engine, providers));
    refuseStrayWork(modules);
    this.service.works = providers;
    await engine.durable?.start(new DurableWorker(providers, engine.counters, this.queues, say));
  }

  start(): void {
    this.service.booted = true;
    this.engine?.durable?.target.startWorker?.();
  }

  snapshot(): Pick<PerfSnapshot, 'defer'> {
    return { defer: this.engine?.stats() ?? null };
  }

  async idle(): Promise<void> {
    if (this.engine !== null) await this.service.idle();
  }

  async closing(): Promise<void> {
    await this.engine?.durable?.pauseWorker();
  }

  async drain(): Promise<void> {
    runningDeferrers.delete(this.service);
    await this.engine?.drain(this.engine.options.drainTimeoutMs);
  }

  private plan(engine: DeferEngine, providers: WorkProviders): AroundFactory {
    const works = new HandlerWorks(engine, (state) => this.service.workOf(state));
    return (site) => {
      const declared = declaredOn(site);
      const holds = engine.durable?.hasDisk === true;
      if (declared.length === 0 && !holds) return null;
      // What it defers by hand must be on disk before it answers, too.
      if (holds) bringHandlerInterceptor(site.method);
      const planned = declared.map((work) => planOne(work, site, providers, engine.durable !== null));
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

function planOne(work: DeclaredWork, site: HandlerSite, providers: WorkProviders, hasStore: boolean): PlannedWork {
  const handler = site.handler.name;
  if ('run' in work) return { ...work, name: work.name ?? (work.run.name || handler) };
  const { type, durable } = work;
  if (durable && !hasStore) throw noStore(`"${handler}" defers to ${type.name} with \`durable: true\``);
  const provided = providers.provide(type, site.controller, handler, durable);
  const name = work.name ?? type.name;
  return { ...work, ...provided, name, place: `${name} of "${handler}"` };
}

export const deferFeature: FeatureDefinition<'defer', ResolvedDeferOptions> = {
  name: 'defer',
  title: 'deferred work',
  observes: 'context',
  service: Deferrer,
  isApplicationsOwn: true,
  option: deferOption,
  create: (options, host) => new DeferFeature(options, host),
};
