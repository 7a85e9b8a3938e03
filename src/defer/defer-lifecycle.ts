import type { DeferStats, PerfSnapshot } from '../core/snapshot.js';
import type { HealthReason } from '../ports/overview.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature, FeatureBoot } from '../request/feature.js';
import { DeferEngine } from './defer-engine.js';
import { declarationsOn, refuseStrayWork } from './decorator/defer-work.decorator.js';
import type { ResolvedDeferOptions } from './defer.options.js';
import { Deferrer, runningDeferrers } from './deferrer.js';
import { DurableWorker } from './durable/durable-worker.js';
import { HandlerWorks } from './decorator/handler-works.js';
import { WorkProviders } from './decorator/work-providers.js';

const NEARLY_FULL = 0.8;

/** Reasons for a degraded health. */
export const findDeferReasons = ({ pending }: DeferStats, maxPending: number): HealthReason[] =>
  pending < maxPending * NEARLY_FULL
    ? []
    : [{ about: 'defer', text: `deferred work: ${pending} of ${maxPending} pending` }];

/** Deferred work of one application, from boot to close. */
export class DeferLifecycle implements Feature {
  readonly service: Deferrer;
  readonly engine: DeferEngine;
  private draining: Promise<void> | null = null;

  constructor(
    private readonly options: ResolvedDeferOptions,
    private readonly host: PerfApplication,
  ) {
    const { recorder, report, requests } = host;
    const publish = recorder.wanted ? recorder.push.bind(recorder) : null;
    this.engine = new DeferEngine(options, publish, report);
    this.service = new Deferrer(this.engine, requests);
  }

  /** @throws PERF_ERR_STORE, PERF_ERR_MISSING_PEER, PERF_ERR_DEFER_WORK, PERF_ERR_DECORATOR naming the handler (when it is placed) */
  async install({ modules, handlers }: FeatureBoot): Promise<void> {
    const { engine } = this;
    runningDeferrers.add(this.service);
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
    this.engine.durable?.target.startWorker?.();
  }

  snapshot(): Pick<PerfSnapshot, 'defer'> {
    return { defer: this.engine.stats() };
  }

  reasons({ defer }: PerfSnapshot): readonly HealthReason[] {
    return defer === null ? [] : findDeferReasons(defer, this.options.maxPending);
  }

  unready(): readonly string[] {
    return this.engine.whyFull().map((why) => `deferred work is full: ${why}`);
  }

  async idle(): Promise<void> {
    await this.service.idle();
  }

  async closing(): Promise<void> {
    await this.engine.durable?.pauseWorker();
  }

  async drainEarly(leftMs: number): Promise<void> {
    await this.engine.finish(this.limit(leftMs));
  }

  drain(leftMs: number): Promise<void> {
    return (this.draining ??= this.engine.drain(this.limit(leftMs)));
  }

  /** Nest closes the microservices of a hybrid application after its HTTP server: `defer()` works until here. */
  close(): void {
    runningDeferrers.delete(this.service);
  }

  private limit(leftMs: number): number {
    return Math.round(Math.min(leftMs, this.options.drainTimeoutMs));
  }
}
