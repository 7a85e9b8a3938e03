import type { AbstractHttpAdapter, ModulesContainer } from '@nestjs/core';
import type { MonotonicClock } from '../core/clock.js';
import type { OncePerCause, Reporter } from '../core/reporter.js';
import type { Route } from '../core/route.js';
import type { CompressionStats, RouteCompressionStats } from '../core/snapshot.js';
import type { ControllerHandlers } from '../http/controller-handlers.js';
import type { RouteRegistry } from '../http/route-registry.js';
import { SHARED_ONLY_BYTES, type ResolvedCompression } from './compression.options.js';
import { Compressor } from './codec/compressor.js';
import { ContentCache } from './cache/content-cache.js';
import { CompressionEngine } from './engine.js';
import { compressOnExpress, type ExpressApplication } from './express/middleware.js';
import { compressOnFastify, type FastifyInstance } from './fastify/hooks.js';
import { auditOnceListening } from './foreign/audit.js';
import { FastifyProbe } from './foreign/fastify.js';
import { compressionSlots, Governor } from './codec/governor.js';
import { HandlerMetadata, refuseSharedWithoutRoute } from './handler-metadata.js';
import { compressionOf, RouteCompression } from './route-compression.js';
import { SharedRoute } from './shared-response/shared-route.js';

/** The compression of one application. */
export class Compression {
  readonly engine: CompressionEngine;
  private readonly cache: ContentCache;
  private readonly metadata = new HandlerMetadata();

  constructor(
    private readonly options: ResolvedCompression,
    private readonly routes: RouteRegistry,
    private readonly report: OncePerCause,
    private readonly logger: Reporter,
    private readonly nowMs: MonotonicClock,
  ) {
    this.cache = new ContentCache(options.cache?.maxBytes ?? SHARED_ONLY_BYTES);
    this.engine = new CompressionEngine({
      thresholdBytes: options.thresholdBytes,
      encodings: options.encodings,
      compressor: new Compressor(options.levels, new Governor(compressionSlots())),
      cache: this.cache,
      contentCache: options.cache !== null,
      report,
    });
  }

  /**
   * Before routes are registered.
   * @throws PERF_ERR_DECORATOR for `@SharedResponse()` on anything but a GET handler
   */
  async install(adapter: AbstractHttpAdapter, handlers: ControllerHandlers, modules: ModulesContainer): Promise<void> {
    refuseSharedWithoutRoute(modules);
    handlers.around((site) => {
      this.metadata.read(site);
      return null;
    });
    this.routes.listen((route) => this.attach(route));
    const foreign = await this.installOn(adapter);
    const { eventHandlers, offHandlers } = this.metadata;
    auditOnceListening({ adapter, report: this.logger, eventHandlers, offHandlers, probe: foreign });
  }

  /** Returns the probe of a compressor that the application has registered before. */
  private async installOn(adapter: AbstractHttpAdapter): Promise<FastifyProbe | null> {
    if (adapter.getType() !== 'fastify') {
      compressOnExpress(adapter.getInstance<ExpressApplication>(), this.engine);
      return null;
    }
    const probe = new FastifyProbe();
    const { foreign } = await compressOnFastify(adapter.getInstance<FastifyInstance>(), {
      engine: this.engine,
      allowSlowLevels: this.options.allowSlowLevels,
      probe: { register: () => probe.register(adapter), covers: (url) => probe.covers(url) },
    });
    return foreign ? probe : null;
  }

  stats(): CompressionStats {
    const { responses, compressed, cacheHits, bytesIn, bytesOut } = this.engine.totals;
    const cacheBytes = this.cache.bytes;
    return { responses, compressed, cacheHits, bytesIn, bytesOut, cacheBytes, routes: this.routeStats() };
  }

  private routeStats(): RouteCompressionStats[] {
    const rows: RouteCompressionStats[] = [];
    for (const route of this.routes.all) {
      const { compressed = 0, cacheHits = 0, bytesIn = 0, bytesOut = 0 } = compressionOf(route)?.counters ?? {};
      if (compressed === 0) continue;
      rows.push({ method: route.method, route: route.pattern, compressed, cacheHits, bytesIn, bytesOut });
    }
    return rows;
  }

  close(): void {
    this.cache.clear();
  }

  private attach(route: Route): void {
    const said = this.metadata.of(route.handler);
    const shared =
      said?.shared === null || said === null
        ? null
        : new SharedRoute(said.shared, this.nowMs, (reason) => this.notShared(route, reason));
    route.compression = new RouteCompression(said?.off ?? false, shared);
  }

  private notShared(route: Route, reason: string): void {
    const where = route.handler?.name ?? route.pattern;
    this.report.report(
      `@SharedResponse() on "${where}": ${reason}`,
      `@SharedResponse() on "${where}" shares nothing: ${reason}.`,
    );
  }
}
