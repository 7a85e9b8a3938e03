import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AbstractHttpAdapter, ModulesContainer } from '@nestjs/core';
import { Compression } from './compression/compression.js';
import { warnOfSharedWhileOff } from './compression/handler-metadata.js';
import { monotonicMs } from './core/clock.js';
import { guarded } from './core/guarded.js';
import type { PerfRecord, SizeNote } from './core/record.js';
import { Recorder } from './core/recorder.js';
import { OncePerCause } from './core/reporter.js';
import { requestContext } from './core/request-context.js';
import type { PerfSinkHost, RouteHistogram } from './core/sink.js';
import type { PerfSnapshot } from './core/snapshot.js';
import { DeferFeature } from './defer/defer-feature.js';
import { ControllerHandlers } from './http/controller-handlers.js';
import { EventLoop } from './event-loop/event-loop.js';
import { afterServerClosed, identifyHandlers, installOnHttp, rawRoute } from './http/http-installation.js';
import { keepRouteMetadata } from './http/route-metadata.js';
import { whenUnprotected } from './http/shutdown-signal.js';
import { RequestLifecycle } from './http/request-lifecycle.js';
import { RouteRegistry } from './http/route-registry.js';
import { ExperimentEngine } from './experiments/experiment-engine.js';
import { Experiments } from './experiments/experiments.js';
import { Latency } from './latency/latency.js';
import { Resources } from './resources/resources.js';
import type { ResolvedOptions } from './perf.options.js';
import { PERF_RESOLVED_OPTIONS } from './perf.tokens.js';

/**
 * All parts of one application, wired. Started once by the module, shut down once: when the HTTP server has closed, or,
 * without one, when the application shuts down.
 * @internal
 */
@Injectable()
export class PerfRuntime {
  readonly logger = new Logger('Perf');
  readonly report = new OncePerCause(this.logger, monotonicMs);
  readonly recorder: Recorder;
  readonly routes = new RouteRegistry();
  readonly lifecycle = new RequestLifecycle(monotonicMs, this.routes, this.report);
  readonly handlers = new ControllerHandlers(this.lifecycle.requestScoped);
  readonly resources: Resources;
  private readonly eventLoop: EventLoop | null;
  readonly defer: DeferFeature;
  private readonly latency: Latency | null;
  private readonly compression: Compression | null;
  private readonly experimentEngine: ExperimentEngine | null;
  readonly experiments: Experiments;
  private adapter: AbstractHttpAdapter | null = null;
  private routeMetadataKept: () => void = () => {};
  private started: Promise<void> | null = null;
  private stopping: Promise<void> | null = null;

  constructor(@Inject(PERF_RESOLVED_OPTIONS) private readonly options: ResolvedOptions) {
    this.recorder = new Recorder(options.sinks, this.report);
    const { compression, eventLoop, experiments, latency, resources } = options;
    this.resources = new Resources(resources, this.recorder, this.logger, monotonicMs);
    this.eventLoop =
      eventLoop === null
        ? null
        : new EventLoop(eventLoop, this.lifecycle, this.recorder, this.report, this.resources.scheduling);
    this.latency =
      latency === null
        ? null
        : new Latency(latency, this.lifecycle, this.routes, this.recorder, monotonicMs, this.eventLoop?.hold ?? null);
    this.compression =
      compression === null ? null : new Compression(compression, this.routes, this.report, this.logger, monotonicMs);
    this.experimentEngine =
      experiments === null
        ? null
        : new ExperimentEngine(experiments, monotonicMs, this.report, {
            hold: this.eventLoop?.hold ?? null,
            sampleResources: () => this.resources.sampleNow(),
          });
    const publish = options.sinks.length === 0 ? null : (record: PerfRecord): void => this.recorder.push(record);
    this.defer = new DeferFeature(options.defer, this.lifecycle, publish, this.report);
    this.experiments = new Experiments(this.experimentEngine, this.lifecycle, this.report);
  }

  /** Before routes are registered. `adapter` is null in an application without HTTP. */
  start(adapter: AbstractHttpAdapter | null, contextEnabled: boolean, modules: ModulesContainer): Promise<void> {
    return (this.started ??= this.startOnce(adapter, contextEnabled, modules));
  }

  private async startOnce(
    adapter: AbstractHttpAdapter | null,
    contextEnabled: boolean,
    modules: ModulesContainer,
  ): Promise<void> {
    this.adapter = adapter;
    // First: a request's record waits for the verdict on a block that ends with it.
    this.eventLoop?.install(contextEnabled);
    this.latency?.install();
    this.experimentEngine?.install(this.lifecycle, this.handlers);
    if (adapter !== null) {
      if (this.observesRequests(contextEnabled)) {
        const handlerRunner = this.eventLoop?.handlerRunner ?? null;
        installOnHttp(adapter, { lifecycle: this.lifecycle, routes: this.routes, contextEnabled, handlerRunner });
      }
      if (this.compression === null) warnOfSharedWhileOff(modules, this.logger);
      else await this.compression.install(adapter, this.handlers, modules);
      this.installSnapshotEndpoint(adapter);
      afterServerClosed(adapter, () => this.stop());
      whenUnprotected(adapter, () => {
        this.logger.warn(
          'SIGTERM would end this process without draining deferred work or flushing records. Call `app.enableShutdownHooks()` in main.ts.',
        );
      });
    }
    // After compression, so nearer to the handler: a shared answer that skips the handler skips its work as well.
    this.defer.install(this.handlers, modules, contextEnabled || adapter === null);
    this.eventLoop?.installOnHandlers(this.handlers);
    await this.recorder.start(this.hostFor(adapter), this.options.flushTimeoutMs);
    this.handlers.place(modules);
    if (adapter !== null) this.routeMetadataKept = keepRouteMetadata(adapter);
    // Closed while the sinks were starting: nobody would stop it again.
    if (this.stopping === null) this.resources.start();
  }

  /** When routes are registered. */
  routesRegistered(): void {
    this.handlers.remove();
    this.routeMetadataKept();
    if (this.adapter !== null && this.eventLoop !== null) identifyHandlers(this.adapter, this.eventLoop.handlerRunner);
  }

  /** When every module is initialised: work that a store has kept may run, before the server listens. */
  async bootstrapped(): Promise<void> {
    this.eventLoop?.start();
    await this.defer.start();
  }

  /** Drains, flushes and closes everything once; later calls wait for the first. */
  stop(): Promise<void> {
    return (this.stopping ??= this.stopOnce());
  }

  private async stopOnce(): Promise<void> {
    await this.defer.drain();
    await this.eventLoop?.close();
    this.resources.stop();
    await this.recorder.close(this.options.flushTimeoutMs);
    this.compression?.close();
    await this.experimentEngine?.close(this.options.flushTimeoutMs);
  }

  /** Resolves when what has happened so far is recorded and flushed to the sinks. */
  async settle(): Promise<void> {
    await this.lifecycle.settled();
    await this.defer.idle();
    await this.eventLoop?.settled();
    await this.recorder.flush(this.options.flushTimeoutMs);
  }

  /** Off means off: without a feature that looks at requests, the server keeps no listener of ours. */
  private observesRequests(contextEnabled: boolean): boolean {
    const features = [this.latency, this.eventLoop, this.compression, this.experimentEngine];
    return contextEnabled || this.options.defer !== null || features.some((feature) => feature !== null);
  }

  snapshot(): PerfSnapshot {
    return {
      at: Date.now(),
      routes: this.latency?.snapshot() ?? [],
      eventLoop: this.eventLoop?.snapshot() ?? null,
      resources: this.resources.snapshot(),
      defer: this.defer.stats(),
      compression: this.compression?.stats() ?? null,
    };
  }

  note({ rows, bytes }: SizeNote): void {
    const state = requestContext.getStore() ?? this.eventLoop?.currentRequest() ?? null;
    if (state === null) {
      const cause = 'PerfService.note() outside a request';
      this.report.report(
        cause,
        `${cause}, or with the context store off: set \`context: true\` in PerfModule.forRoot().`,
      );
      return;
    }
    const note = (state.note ??= {});
    if (rows !== undefined) note.rows = (note.rows ?? 0) + rows;
    if (bytes !== undefined) note.bytes = (note.bytes ?? 0) + bytes;
  }

  private installSnapshotEndpoint(adapter: AbstractHttpAdapter): void {
    const { snapshotEndpoint } = this.options;
    if (snapshotEndpoint === null) return;
    const { path, authorize } = snapshotEndpoint;
    const answer = async () => ({
      status: 200,
      type: 'application/json; charset=utf-8',
      body: JSON.stringify(this.snapshot()),
    });
    const failed = (reason: string): void => {
      const cause = `the snapshot endpoint failed: ${reason}`;
      this.report.report(cause, `${cause}. Its caller was answered with 500.`);
    };
    rawRoute(adapter, path, guarded(authorize, answer, failed));
  }

  private hostFor(adapter: AbstractHttpAdapter | null): PerfSinkHost {
    return {
      slowMs: this.latency?.slowMs ?? null,
      snapshot: () => this.snapshot(),
      histograms: (): Iterable<RouteHistogram> => this.latency?.histograms() ?? [],
      get: (path, answer) => {
        if (adapter !== null) rawRoute(adapter, path, answer);
      },
      report: (cause, message, count) => this.report.report(cause, message, count),
      activeSpan: (current) => {
        this.lifecycle.observe({ started: (state) => void (state.span = current()) });
      },
    };
  }
}
