import { RejectedList, type Rejected } from '../ports/rejected.js';
import type { DeferStats, PerfSnapshot } from '../core/snapshot.js';
import type { HealthReason } from '../ports/overview.js';
import { PerfApplication } from '../request/application.js';
import {
  provideFeature,
  providePort,
  type Feature,
  type FeatureBoot,
  type FeatureDefinition,
} from '../request/feature.js';
import { DeferEngine } from './defer-engine.js';
import { declarationsOn, refuseStrayWork } from './decorator/defer-work.decorator.js';
import { deferOption, type ResolvedDeferOptions } from './defer.options.js';
import { Deferrer, offError, runningDeferrers } from './deferrer.js';
import { DurableWorker } from './durable/durable-worker.js';
import { HandlerWorks } from './decorator/handler-works.js';
import { WorkProviders } from './decorator/work-providers.js';

/** The dashboard lists the newest dead letters. */
const DEAD_LETTERS_SHOWN = 30;
const NEARLY_FULL = 0.8;

/** Reasons for a degraded health. */
export const findDeferReasons = ({ pending }: DeferStats, maxPending: number): HealthReason[] =>
  pending < maxPending * NEARLY_FULL
    ? []
    : [{ about: 'defer', text: `deferred work: ${pending} of ${maxPending} pending` }];

/** Deferred work of one application. With the feature off its engine is null, and its service throws. */
export class DeferFeature implements Feature {
  readonly service: Deferrer;
  readonly engine: DeferEngine | null;
  private draining: Promise<void> | null = null;

  constructor(
    private readonly options: ResolvedDeferOptions | null,
    private readonly host: PerfApplication,
  ) {
    const { recorder, report, requests } = host;
    const publish = recorder.wanted ? recorder.push.bind(recorder) : null;
    this.engine = options === null ? null : new DeferEngine(options, publish, report);
    this.service = new Deferrer(this.engine, requests);
  }

  /** @throws PERF_ERR_OFF, PERF_ERR_STORE, PERF_ERR_MISSING_PEER, PERF_ERR_DEFER_WORK, PERF_ERR_DECORATOR naming the handler (when it is placed) */
  async install({ modules, handlers }: FeatureBoot): Promise<void> {
    const { engine } = this;
    runningDeferrers.add(this.service);
    if (engine === null) {
      const decorated = handlers.find(({ method }) => declarationsOn(method).length > 0);
      if (decorated !== undefined) throw offError(`@DeferWork on ${decorated.handler.name}`);
      return;
    }
    const report = (cause: string, message: string): void => this.host.report.report(cause, message);
    const providers = new WorkProviders(modules, engine.durable !== null);
    refuseStrayWork(modules);
    providers.scan();
    this.service.works = providers;
    const works = new HandlerWorks(engine, providers);
    this.host.requests.deferrer = works;
    const queues = new Set(providers.queues);
    for (const { method, controller, handler, sendsEvents } of handlers) {
      for (const declaration of declarationsOn(method)) {
        for (const { queue } of declaration.works) if (queue !== null) queues.add(queue);
        works.plan(declaration, controller, handler.name, sendsEvents);
      }
    }
    await engine.durable?.start(new DurableWorker(providers, engine.counters, queues, report));
  }

  start(): void {
    this.service.booted = true;
    this.engine?.durable?.target.startWorker?.();
  }

  snapshot(): Pick<PerfSnapshot, 'defer'> {
    return { defer: this.engine?.stats() ?? null };
  }

  reasons({ defer }: PerfSnapshot): readonly HealthReason[] {
    return defer === null || this.options === null ? [] : findDeferReasons(defer, this.options.maxPending);
  }

  unready(): readonly string[] {
    return (this.engine?.whyFull() ?? []).map((why) => `deferred work is full: ${why}`);
  }

  async idle(): Promise<void> {
    if (this.engine !== null) await this.service.idle();
  }

  async closing(): Promise<void> {
    await this.engine?.durable?.pauseWorker();
  }

  async drainEarly(leftMs: number): Promise<void> {
    await this.engine?.finish(this.limit(leftMs));
  }

  drain(leftMs: number): Promise<void> {
    return (this.draining ??= this.engine?.drain(this.limit(leftMs)) ?? Promise.resolve());
  }

  /** Nest closes the microservices of a hybrid application after its HTTP server: `defer()` works until here. */
  close(): void {
    runningDeferrers.delete(this.service);
  }

  private limit(leftMs: number): number {
    return Math.round(Math.min(leftMs, this.engine!.options.drainTimeoutMs));
  }
}

/** Without the data of the letters: parsing 16 MiB of it would block the event loop at each look. */
function listNewest({ durable }: DeferEngine): Rejected[] {
  const newest = durable?.dead.readPage(-DEAD_LETTERS_SHOWN, DEAD_LETTERS_SHOWN) ?? [];
  return newest.map(({ entry: { id, name }, error, rejectedAt }) => ({ id, name, error, rejectedAt }));
}

export const deferFeature: FeatureDefinition<'defer', ResolvedDeferOptions> = {
  name: 'defer',
  title: 'deferred work',
  observes: 'requests',
  service: Deferrer,
  isApplicationsOwn: true,
  option: deferOption,
  token: DeferFeature,
  providers: [
    provideFeature(
      'defer',
      DeferFeature,
      [PerfApplication],
      (options: ResolvedDeferOptions | null, application: PerfApplication) => new DeferFeature(options, application),
    ),
    providePort(RejectedList, DeferFeature, ({ engine }): RejectedList | null => {
      return engine && { rejected: async () => listNewest(engine) };
    }),
  ],
};
