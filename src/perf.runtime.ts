import type { Server } from 'node:http';
import {
  Inject,
  Injectable,
  Optional,
  type BeforeApplicationShutdown,
  type InjectionToken,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
  type OnModuleInit,
} from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModuleRef, ModulesContainer } from '@nestjs/core';
import { holdingProcess } from './core/held-process.js';
import { LatencyFigures } from './ports/latency-figures.js';
import type { HealthReason, Overview, PerfHealth, PerfReadiness } from './ports/overview.js';
import type { PerfSinkHost } from './core/sink.js';
import type { PerfSnapshot } from './core/snapshot.js';
import { inOneTurn, type Steps } from './core/turns.js';
import { EVENT_LOOP } from './event-loop/event-loop.feature.js';
import { MainThreadLiveness } from './event-loop/liveness.js';
import { PerfApplication } from './request/application.js';
import { controllerMethods, findHandler, listPathStarts } from './request/handlers.js';
import { isFeature, refuseMissingExtensions, readToken, type PerfExtension } from './request/extension.js';
import { FEATURE_OPTIONS, type Feature } from './request/feature.js';
import { observeAdapter, choosePlatform } from './request/adapter.js';
import type { Platform } from './request/platform.js';
import { FEATURES, KEPT_ON, type ProvidedOptions, type ResolvedOptions } from './perf.options.js';
import { resolveSinks, type SinkOption } from './perf.sinks.js';
import { startLine } from './perf.start-line.js';
import { Shutdown } from './perf.shutdown.js';
import { installSnapshotEndpoint } from './perf.snapshot-endpoint.js';
import { PERF_EXTENSIONS, PERF_SINKS } from './perf.tokens.js';
import { buildPipeline } from './pipeline.js';

/** The fields of a snapshot while their features are off. */
const OFF = {
  eventLoop: null,
  resources: null,
  defer: null,
  compression: null,
  offload: null,
  resilience: null,
  cache: null,
};

/** The life of one application, by Nest's hooks: it starts once, and its {@link Shutdown} stops it once. @internal */
@Injectable()
export class PerfRuntime
  implements
    Overview,
    OnModuleInit,
    OnApplicationBootstrap,
    OnModuleDestroy,
    BeforeApplicationShutdown,
    OnApplicationShutdown
{
  /** In the order of {@link FEATURES}, then those of extensions. Empty before the start. */
  private features: readonly Feature[] = [];
  private readonly options: ResolvedOptions;
  /** Paths of raw routes, for the first line of the log. */
  private readonly paths: string[] = [];
  private platform: Platform | null = null;
  /** False once sinks have started: later registrations are ignored. */
  private sinksMayRegister = true;
  /** The boot itself. `stop()` waits for it, and {@link started} for `stop()` where the boot has failed. */
  private starting: Promise<void> = Promise.resolve();
  private isServing = false;
  private started: Promise<void> | null = null;
  private readonly shutdown: Shutdown;
  /** Answers at `eventLoop.port` while a switch has the event loop off; else null. */
  private readonly mainThreadLiveness: MainThreadLiveness | null;

  constructor(
    @Inject(FEATURE_OPTIONS) { resolved: options }: ProvidedOptions,
    @Inject(PerfApplication) private readonly application: PerfApplication,
    @Inject(PERF_EXTENSIONS) private readonly extensions: readonly PerfExtension[],
    @Inject(PERF_SINKS) private readonly sinks: readonly SinkOption[],
    @Optional() @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
    @Optional() @Inject(ModuleRef) private readonly module: ModuleRef,
    @Optional() @Inject(ApplicationConfig) private readonly config: ApplicationConfig,
    @Optional() @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {
    this.options = options;
    this.shutdown = new Shutdown({
      options,
      application,
      features: () => this.features,
      booted: () => this.starting.catch(() => {}),
    });
    const { eventLoop, livenessAt } = options;
    this.mainThreadLiveness =
      eventLoop !== null || livenessAt === null ? null : new MainThreadLiveness(livenessAt, application);
  }

  /** Called before Nest registers routes; in an application without HTTP, which has none, at `onModuleInit`. */
  start(hasRoutes: boolean): Promise<void> {
    return (this.started ??= (this.starting = this.startOnce(hasRoutes)).catch(async (error: unknown) => {
      // Nest does not close an application whose boot has failed.
      await this.stop();
      throw error;
    }));
  }

  private async startOnce(hasRoutes: boolean): Promise<void> {
    const { application, options, modules } = this;
    const { logger, recorder, report, requests, routes } = application;
    refuseMissingExtensions(modules, this.extensions);
    this.features = this.findFeatures();
    if (!options.enabled)
      logger.log('Switched off: nothing is measured, compressed or shared. Deferred work still runs.');
    for (const name of options.namedOff.filter((name) => KEPT_ON.has(name)))
      logger.warn(`NESTJS_PERF_OFF names \`${name}\`, which stays on: it is the application's own work.`);
    const { httpAdapter } = this.adapterHost;
    const platform = hasRoutes ? choosePlatform(httpAdapter, application) : null;
    const adapter = platform === null ? null : httpAdapter;
    this.platform = platform;
    requests.platform = platform;
    // The page has nothing to show without a server.
    const ownSinks = platform === null ? [] : this.features.flatMap(({ sink = [] }) => sink);
    if (recorder.wanted) recorder.use(resolveSinks(this.sinks, this.module), ownSinks);
    const handlers = controllerMethods(modules);
    routes.findHandler = (...wanted) => findHandler(handlers, ...wanted);
    routes.pathStarts = listPathStarts(this.config, handlers);
    if (adapter !== null && platform !== null && this.observesRequests())
      observeAdapter(adapter, platform, application);
    for (const feature of this.features) await feature.install?.({ modules, handlers, platform, adapter });
    const { snapshotEndpoint } = options;
    if (platform !== null && snapshotEndpoint !== null) {
      this.paths.push(snapshotEndpoint.path);
      installSnapshotEndpoint(platform, snapshotEndpoint, () => this.snapshot(), report);
    }
    if (adapter !== null) this.shutdown.watch(adapter.getHttpServer() as Server | undefined);
    await recorder.start(() => this.createHost(platform), options.flushTimeoutMs);
    this.sinksMayRegister = false;
    requests.pipeline = buildPipeline((token) => this.provided(token), requests);
  }

  /** Nest calls this hook right behind the registration of routes, of a global module first. */
  async onModuleInit(): Promise<void> {
    // An application without HTTP registers none.
    if (this.started === null) await this.start(false);
    this.platform?.routesRegistered?.();
  }

  /** False: no feature acts on requests, and the server gets no listener. */
  private observesRequests(): boolean {
    const { options, extensions } = this;
    return (
      extensions.length > 0 || FEATURES.some(({ name, observes }) => observes === 'requests' && options[name] !== null)
    );
  }

  private findFeatures(): Feature[] {
    const own = FEATURES.map(({ token }) => this.provided<Feature>(token));
    const tokens = this.extensions.flatMap(({ providers }) => providers.map(readToken));
    const added = tokens.map((token) => this.provided(token)).filter(isFeature);
    return [...[...own, this.mainThreadLiveness].filter((feature) => feature !== null), ...added];
  }

  /** A provider of this module; null where a feature is off, or no extension provides it. */
  private provided<T>(token: InjectionToken<T>): T | null {
    try {
      return this.module.get<T | undefined>(token) ?? null;
    } catch {
      return null;
    }
  }

  async onApplicationBootstrap(): Promise<void> {
    // The application was closed while it booted: nothing would stop a feature that starts now.
    if (this.shutdown.isStopping) return;
    try {
      for (const feature of this.features) await feature.start?.();
    } catch (error) {
      await this.stop();
      throw error;
    }
    this.isServing = true;
    if (this.options.enabled)
      this.application.logger.log(startLine(this.application, this.options, this.extensions, this.paths));
  }

  /** Nest's first hook of closing, on SIGTERM too. The server closes later, by long where streams are open. */
  async onModuleDestroy(): Promise<void> {
    await this.shutdown.closing();
  }

  /** Without an HTTP server to wait for, it stops here: the application's queues and databases are still open. */
  async beforeApplicationShutdown(): Promise<void> {
    if (!this.shutdown.isListening) await this.stop();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.stop();
  }

  private async stop(): Promise<void> {
    await this.shutdown.stop();
  }

  /** Resolves when everything so far is recorded and flushed to the sinks. */
  settle(): Promise<void> {
    return holdingProcess(async () => {
      await this.application.requests.settled();
      for (const feature of this.features.toReversed()) await feature.idle?.();
      await this.application.recorder.flush(this.options.flushTimeoutMs);
    });
  }

  snapshot(): PerfSnapshot {
    return inOneTurn(this.snapshotSteps());
  }

  *snapshotSteps(): Steps<PerfSnapshot> {
    const at = Date.now();
    const parts: Partial<PerfSnapshot>[] = [];
    for (const feature of this.features) {
      yield;
      parts.push(feature.snapshot?.() ?? {});
      if (feature.snapshotSteps !== undefined) parts.push(yield* feature.snapshotSteps());
    }
    const findings = parts.flatMap(({ findings = [] }) => findings);
    return Object.assign({ at, routes: [], upstream: [], users: [], work: [], ...OFF }, ...parts, { findings });
  }

  health(): PerfHealth {
    const reasons = this.findReasons(this.snapshot()).map(({ text }) => text);
    return { status: reasons.length === 0 ? 'ok' : 'degraded', reasons };
  }

  findReasons(snapshot: PerfSnapshot): readonly HealthReason[] {
    return this.features.flatMap((feature) => feature.reasons?.(snapshot) ?? []);
  }

  ready(): PerfReadiness {
    const { begun } = this.shutdown;
    const own = this.isServing && !begun ? [] : [`the application is ${begun ? 'closing' : 'starting'}`];
    const reasons = [...own, ...this.features.flatMap((feature) => feature.unready?.() ?? [])];
    return { ready: reasons.length === 0, reasons };
  }

  private createHost(platform: Platform | null): PerfSinkHost {
    const { report, requests } = this.application;
    const latency = this.provided(LatencyFigures);
    return {
      snapshot: () => this.snapshot(),
      histograms: () => latency?.histograms() ?? [],
      firstByteHistograms: () => latency?.firstByteHistograms() ?? [],
      get: (path, answer) => {
        if (platform === null || !this.sinksMayRegister) return;
        this.paths.push(path);
        platform.rawRoute(path, answer);
      },
      witness: (read) => {
        if (this.sinksMayRegister) (this.mainThreadLiveness ?? this.provided(EVENT_LOOP)?.liveness)?.expose(read);
      },
      report: (cause, message, count) => report.report(cause, message, count),
      activeSpan: (current) => {
        if (this.sinksMayRegister) requests.readSpan = current;
      },
    };
  }
}
