import { Inject, Injectable, Logger, Optional } from '@nestjs/common';
import { HttpAdapterHost, ModuleRef, type AbstractHttpAdapter, type ModulesContainer } from '@nestjs/core';
import { releaseOf } from './core/application-package.js';
import { monotonicMs } from './core/clock.js';
import { holdingProcess } from './core/held-process.js';
import { HISTORY } from './core/history.js';
import { LATENCY_FIGURES } from './core/latency-figures.js';
import { OVERVIEW } from './core/overview.js';
import { Recorder } from './core/recorder.js';
import { OncePerCause, safeReporter } from './core/reporter.js';
import { RequestUnits } from './core/request-unit.js';
import { Routes } from './core/route.js';
import type { PerfSink, PerfSinkHost } from './core/sink.js';
import type { PerfSnapshot } from './core/snapshot.js';
import { inOneTurn, type Steps } from './core/turns.js';
import type { MountPaths } from './http/express/mounts.js';
import { refuseMissingExtensions, refuseTwice, type Extension, type PerfExtension } from './http/extension.js';
import type { Feature, FeatureHost } from './http/feature.js';
import { REQUEST_SCOPED } from './http/handler.interceptor.js';
import { ControllerHandlers } from './http/handlers.js';
import { RequestLifecycle } from './http/lifecycle.js';
import { mountsOf, platformOf, startBeforeParsers } from './http/platform-of.js';
import type { Platform } from './http/platform.js';
import { watchRegistration } from './http/route-functions.js';
import { afterServerClosed, endKeptConnections, whenUnprotected } from './http/shutdown.js';
import { needsContext } from './perf.context.js';
import { FEATURES, type ProvidedOptions, type ResolvedOptions } from './perf.options.js';
import { installSnapshotEndpoint } from './perf.snapshot-endpoint.js';
import { healthOf, type PerfHealth } from './perf.health.js';
import { resolveSinks, type SinkOption } from './perf.sinks.js';
import { PERF_EXTENSIONS, PERF_RESOLVED_OPTIONS, PERF_SINKS } from './perf.tokens.js';

/**
 * One application: its requests, routes and handlers, its recorder, and its features. Started once by the module, stopped
 * once: when the HTTP server has closed, or, without one, when the application shuts down.
 * @internal
 */
@Injectable()
export class PerfRuntime {
  readonly logger = safeReporter(new Logger('Perf'));
  readonly report = new OncePerCause(this.logger, monotonicMs);
  readonly recorder: Recorder;
  readonly routes = new Routes(this.report);
  readonly requests = new RequestLifecycle(monotonicMs, this.routes, this.report);
  private readonly handlers = new ControllerHandlers();
  private readonly extensions: readonly Extension[];
  /** In the order of {@link FEATURES}, then those of {@link extensions}. */
  private readonly features: readonly Feature[];
  private readonly options: ResolvedOptions;
  private readonly mounts: MountPaths;
  private readonly release: string | null;
  /** Of raw routes, for the first line of the log. */
  private readonly paths: string[] = [];
  /** Gives back what stood for handlers and adapter while Nest registered routes. */
  routesRegistered = (): void => this.handlers.giveBack();
  private endKeptConnections: () => void = () => {};
  private starting: Promise<void> = Promise.resolve();
  private started: Promise<void> | null = null;
  private stopping: Promise<void> | null = null;

  constructor(
    @Inject(PERF_RESOLVED_OPTIONS) { resolved: options }: ProvidedOptions,
    @Inject(PERF_EXTENSIONS) extensions: readonly PerfExtension[],
    @Inject(PERF_SINKS) private readonly sinks: readonly SinkOption[],
    @Optional() @Inject(HttpAdapterHost) { httpAdapter }: HttpAdapterHost,
    @Optional() @Inject(ModuleRef) private readonly application: ModuleRef,
  ) {
    this.options = options;
    this.mounts = mountsOf(httpAdapter, options.enabled);
    this.release = releaseOf(options.release);
    const { logger, report, requests, routes, handlers } = this;
    const isHeard = FEATURES.some(({ name, hearsRecords = false }) => hearsRecords && options[name] !== null);
    const recorder = new Recorder(report, options.enabled && (sinks.length > 0 || isHeard));
    this.recorder = recorder;
    const host: FeatureHost = {
      requests,
      routes,
      handlers,
      recorder,
      report,
      logger,
      nowMs: monotonicMs,
      flushTimeoutMs: options.flushTimeoutMs,
      units: new RequestUnits('unit', options.unit, report),
      enabled: options.enabled,
      release: this.release,
    };
    OVERVIEW.set(requests, {
      snapshot: () => this.snapshotSteps(),
      reasons: (snapshot) => this.healthOf(snapshot).reasons,
      past: () => HISTORY.get(requests),
    });
    const given = [...extensions, ...options.extensions] as Extension[];
    refuseTwice(given);
    this.extensions = given.toSorted((a, b) => Number(b.innermost ?? false) - Number(a.innermost ?? false));
    const own = FEATURES.map((feature) => feature.create(options[feature.name], host));
    this.features = [...own, ...this.extensions.map((extension) => extension.create(host))];
    REQUEST_SCOPED.set(requests, handlers.requestScoped);
    if (this.observesRequests()) startBeforeParsers(httpAdapter, requests);
  }

  serviceOf(feature: (typeof FEATURES)[number]): object {
    return this.features[FEATURES.indexOf(feature)]!.service!;
  }

  extension(name: string): Feature | null {
    const at = this.extensions.findIndex((extension) => extension.name === name);
    return at < 0 ? null : this.features[FEATURES.length + at]!;
  }

  /** Before routes are registered. `adapter` is null in an application without HTTP. */
  start(adapter: AbstractHttpAdapter | null, modules: ModulesContainer): Promise<void> {
    return (this.started ??= (this.starting = this.startOnce(adapter, modules)).catch(async (error: unknown) => {
      // Nobody closes an application whose boot has failed.
      await this.stop();
      throw error;
    }));
  }

  private async startOnce(adapter: AbstractHttpAdapter | null, modules: ModulesContainer): Promise<void> {
    refuseMissingExtensions(modules, new Set(this.extensions.map(({ name }) => name)));
    if (this.recorder.wanted) this.recorder.use(resolveSinks(this.sinks, this.application));
    const { http } = this.options;
    const platform = adapter === null ? null : platformOf(adapter, http, this.mounts, this.logger);
    this.requests.contextAllowed = this.options.context !== false;
    if (needsContext(this.options, modules)) this.requests.enableContext();
    this.requests.platform = platform;
    if (!this.options.enabled)
      this.logger.log('Switched off: nothing is measured, compressed or shared. Deferred work still runs.');
    if (this.observesRequests()) platform?.observe(this.requests, this.routes);
    for (const feature of this.features) await feature.install?.({ modules, platform, adapter });
    const { snapshotEndpoint } = this.options;
    if (platform !== null && snapshotEndpoint !== null) {
      this.paths.push(snapshotEndpoint.path);
      installSnapshotEndpoint(platform, snapshotEndpoint, () => this.snapshot(), this.report);
    }
    if (adapter !== null) this.watchServer(adapter);
    await this.recorder.start((sink) => this.hostFor(sink, platform), this.options.flushTimeoutMs);
    if (adapter === null) return;
    const { handlers, requests, routes } = this;
    // Switched off, only what deferred work and extensions run around stays.
    handlers.place(modules, this.options.enabled);
    if (handlers.sites.length > 0) this.routesRegistered = watchRegistration(adapter, handlers, requests, routes);
  }

  private watchServer(adapter: AbstractHttpAdapter): void {
    this.endKeptConnections = () => endKeptConnections(adapter);
    afterServerClosed(adapter, () => this.stop());
    whenUnprotected(adapter, () => {
      this.logger.warn(
        'SIGTERM would end this process without draining deferred work or flushing records. Call `app.enableShutdownHooks()` in main.ts.',
      );
    });
  }

  async bootstrapped(): Promise<void> {
    // Closed meanwhile: nobody would stop it again.
    if (this.stopping !== null) return;
    try {
      for (const feature of this.features) await feature.start?.();
    } catch (error) {
      await this.stop();
      throw error;
    }
    if (this.options.enabled) this.logger.log(this.startLine());
  }

  async closing(): Promise<void> {
    this.endKeptConnections();
    for (const feature of this.features) await feature.closing?.();
  }

  /** Drains, flushes and closes everything once; later calls wait for the first. */
  stop(): Promise<void> {
    return (this.stopping ??= this.stopOnce());
  }

  private async stopOnce(): Promise<void> {
    // An application may be closed while it boots: what is only half there could not be closed.
    await this.starting.catch(() => {});
    this.routesRegistered();
    const lastFirst = this.features.toReversed();
    for (const feature of lastFirst) await feature.drain?.();
    await this.recorder.close(this.options.flushTimeoutMs);
    for (const feature of lastFirst) await feature.close?.();
  }

  /** Resolves when what has happened so far is recorded and flushed to the sinks. */
  settle(): Promise<void> {
    return holdingProcess(async () => {
      await this.requests.settled();
      for (const feature of this.features.toReversed()) await feature.idle?.();
      await this.recorder.flush(this.options.flushTimeoutMs);
    });
  }

  /** Off means off: without a feature that looks at requests, the server keeps no listener of ours. */
  private observesRequests(): boolean {
    const { options, requests, extensions } = this;
    return (
      requests.contextEnabled ||
      FEATURES.some(({ name, observes }) => observes !== 'process' && options[name] !== null) ||
      (options.enabled && extensions.some(({ observesRequests }) => observesRequests === true))
    );
  }

  snapshot(): PerfSnapshot {
    return inOneTurn(this.snapshotSteps());
  }

  private *snapshotSteps(): Steps<PerfSnapshot> {
    const at = Date.now();
    const off = {
      eventLoop: null,
      resources: null,
      defer: null,
      compression: null,
      offload: null,
      guard: null,
      cache: null,
    };
    const parts: Partial<PerfSnapshot>[] = [];
    for (const feature of this.features) {
      yield;
      parts.push(feature.snapshot?.() ?? {});
      if (feature.snapshotSteps !== undefined) parts.push(yield* feature.snapshotSteps());
    }
    const findings = parts.flatMap(({ findings = [] }) => findings);
    return Object.assign({ at, routes: [], upstream: [], users: [], ...off }, ...parts, { findings });
  }

  health(): PerfHealth {
    return this.healthOf(this.snapshot());
  }

  private healthOf(snapshot: PerfSnapshot): PerfHealth {
    const others = this.features.flatMap((feature) => feature.reasons?.() ?? []);
    return healthOf(snapshot, this.options.defer?.maxPending ?? null, others);
  }

  /** What is on, and where to look. */
  private startLine(): string {
    const served = this.requests.platform !== null;
    const works = FEATURES.filter(({ needsServer = false }) => served || !needsServer);
    const on = works.filter(({ name }) => this.options[name] !== null).map(({ title }) => title);
    const sinks = this.recorder.sinkNames;
    const places = [...this.paths.map((path) => `GET ${path}`), '`PerfService.snapshot()`'];
    return [
      whatIsOn(on, this.extensions),
      sinks.length === 0 ? 'No sink: records go nowhere' : `Records go to: ${sinks.join(', ')}`,
      `Look at ${places.join(', ')}`,
      ...(this.release === null ? [] : [`Release ${this.release}`]),
    ].join('. ');
  }

  private hostFor({ name }: PerfSink, platform: Platform | null): PerfSinkHost {
    const latency = LATENCY_FIGURES.get(this.requests);
    return {
      snapshot: () => this.snapshot(),
      histograms: () => latency?.histograms() ?? [],
      get: (path, answer) => {
        if (platform === null) return;
        this.paths.push(path);
        platform.rawRoute(path, `sink "${name}"`, answer);
      },
      report: (cause, message, count) => this.report.report(cause, message, count),
      activeSpan: (current) => {
        this.requests.observe({ started: (state) => void (state.span = current()) });
      },
    };
  }
}

/** `'On: latency, users; extensions: cache, guard'` */
function whatIsOn(titles: readonly string[], extensions: readonly Extension[]): string {
  if (extensions.length === 0) return titles.length === 0 ? 'Nothing is on' : `On: ${titles.join(', ')}`;
  const names = extensions.map(({ name }) => name).join(', ');
  return `On: ${titles.length === 0 ? 'no feature' : titles.join(', ')}; extensions: ${names}`;
}
