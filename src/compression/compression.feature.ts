import type { Server } from 'node:http';
import type { Route } from '../core/route.js';
import type { PerfSnapshot, RouteCompressionStats } from '../core/snapshot.js';
import type { Feature, FeatureBoot, FeatureDefinition, FeatureHost } from '../http/feature.js';
import type { Platform } from '../http/platform.js';
import { compressionOption, SHARED_ONLY_BYTES, type ResolvedCompression } from './compression.options.js';
import { ContentCache } from './cache/content-cache.js';
import { CompressionEngine } from './engine.js';
import { compressOnExpress, type ExpressApplication } from './express/response-holder.js';
import { compressOnFastify, type FastifyInstance } from './fastify/hooks.js';
import { tellOfForeignCompressors } from './foreign.js';
import { compressionSlots, Compressor, Governor } from './codec/compressor.js';
import { HandlerMetadata } from './handler-metadata.js';
import { CompressionCounters, ROUTE_COMPRESSION, RouteCompression } from './route-compression.js';
import type { CallerSign } from './shared-response/known-caller.js';
import { SharedRoute, type SharedResponseOptions } from './shared-response/shared-route.js';

/** The compression of one application. */
class Compression implements Feature {
  private readonly engine: CompressionEngine;
  private readonly cache: ContentCache;
  private readonly metadata = new HandlerMetadata();
  /** Handlers of which the log has said that known callers get answers of their own. */
  private readonly saidOwn = new Set<string>();

  constructor(
    private readonly options: ResolvedCompression,
    private readonly host: FeatureHost,
  ) {
    this.cache = new ContentCache(options.cache?.maxBytes ?? SHARED_ONLY_BYTES);
    const compressor = new Compressor(options.levels, new Governor(compressionSlots()));
    this.engine = new CompressionEngine(options, compressor, this.cache, host.report);
  }

  /** @throws PERF_ERR_DECORATOR for `@SharedResponse()` on anything but a GET handler, `@NoCompression()` on anything but a route */
  async install({ modules, platform, adapter }: FeatureBoot): Promise<void> {
    if (platform === null || adapter === null) return;
    const { handlers, logger, routes } = this.host;
    this.metadata.readAll(modules, handlers);
    routes.listen((route) => this.attach(route));
    const beforeRoutes = await this.installOn(platform);
    const { offHandlers } = this.metadata;
    const server = adapter.getHttpServer() as Server;
    tellOfForeignCompressors({ platform, server, report: logger, offHandlers, beforeRoutes });
  }

  /** Whether the application has registered `@fastify/compress` before. */
  private async installOn({ application, kind }: Platform): Promise<boolean> {
    const { engine, options } = this;
    if (kind === 'fastify') return compressOnFastify(application as FastifyInstance, engine, options.allowSlowLevels);
    compressOnExpress(application as ExpressApplication, engine, this.host.requests);
    return false;
  }

  snapshot(): Pick<PerfSnapshot, 'compression'> {
    const totals = new CompressionCounters();
    for (const { counters } of [this.engine.unrouted, this.engine.off]) totals.add(counters);
    const routes: RouteCompressionStats[] = [];
    for (const route of this.host.routes.all) {
      const counters = ROUTE_COMPRESSION.get(route)?.counters;
      if (counters === undefined) continue;
      totals.add(counters);
      const { compressed, cacheHits, bytesIn, bytesOut } = counters;
      if (compressed > 0) {
        routes.push({ method: route.method, route: route.pattern, compressed, cacheHits, bytesIn, bytesOut });
      }
    }
    const { responses, compressed, cacheHits, bytesIn, bytesOut } = totals;
    const cacheBytes = this.cache.bytes;
    return { compression: { responses, compressed, cacheHits, bytesIn, bytesOut, cacheBytes, routes } };
  }

  close(): void {
    this.cache.clear();
  }

  private attach(route: Route): void {
    const { off, shared } = this.metadata.of(route.handler);
    ROUTE_COMPRESSION.set(route, new RouteCompression(off, shared && this.sharedRoute(route, shared)));
  }

  private sharedRoute(route: Route, options: SharedResponseOptions): SharedRoute {
    const { cache, host } = this;
    const where = route.handler?.name ?? route.pattern;
    const notShared = (reason: string): void =>
      host.report.report(
        `@SharedResponse() on "${where}": ${reason}`,
        `@SharedResponse() on "${where}" shares nothing: ${reason}.`,
      );
    const gaveOwn = (sign: CallerSign): void => this.sayOwn(where, sign);
    return new SharedRoute(options, { cache, nowMs: host.nowMs, units: host.units, notShared, gaveOwn });
  }

  /** Once, without a count of its repeats: signed-in callers are nothing that goes wrong. */
  private sayOwn(where: string, sign: CallerSign): void {
    if (this.saidOwn.has(where)) return;
    this.saidOwn.add(where);
    const line =
      `@SharedResponse() on "${where}": a caller that is known by \`${sign}\` got an answer of its own, as all do that \`Cookie\`, ` +
      '`Authorization` or `unit` makes known. To share it, send `Cache-Control: public` or write `forEveryone: true` where it is ' +
      'the same for all of them; else give a `varyBy` that returns what it depends on.';
    this.host.report.report(line, line);
  }
}

/**
 * Off: `@SharedResponse()` shares nothing, and that is said; not where the whole module is off, which says so itself. Misplaced
 * decorators stop the boot all the same.
 */
const off = ({ handlers, logger, enabled }: FeatureHost): Feature => {
  const metadata = new HandlerMetadata();
  const { sharedHandlers } = metadata;
  return {
    install: ({ modules, platform }) => {
      if (platform !== null) metadata.readAll(modules, handlers);
    },
    start: () => {
      if (!enabled || sharedHandlers.size === 0) return;
      logger.warn(
        `@SharedResponse() on ${[...sharedHandlers].join(', ')} shares nothing: \`compression: false\` has switched off what it needs. ` +
          'Remove that option, or the decorator. To send a shared answer unencoded, put @NoCompression() beside it.',
      );
    },
  };
};

export const compressionFeature: FeatureDefinition<'compression', ResolvedCompression> = {
  name: 'compression',
  title: 'compression',
  observes: 'requests',
  needsServer: true,
  option: compressionOption,
  create: (options, host) => (options === null ? off(host) : new Compression(options, host)),
};
