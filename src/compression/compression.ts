import type { Type } from '@nestjs/common';
import { getOrAdd } from '../core/get-or-add.js';
import type { RequestState } from '../request/request-state.js';
import type { PerfSnapshot } from '../core/snapshot.js';
import type { PerfApplication } from '../request/application.js';
import type { Feature, FeatureBoot } from '../request/feature.js';
import { SHARED_ONLY_BYTES, type ResolvedCompression } from './compression.options.js';
import { Compressor } from './codec.js';
import { ContentCache } from './content-cache.js';
import { CompressionEngine } from './engine.js';
import { checkHandlers } from './handler-metadata.js';
import { holdResponse } from './held-head.js';
import { HeldResponse } from './held-response.js';
import { registerReplyCompress, type FastifyApplication } from './reply-compress.js';
import { readSharedOptions } from './shared-response/shared-response.decorator.js';
import type { CallerSign } from './shared-response/shared-flight.js';
import { SharedRoute, type SharedResponseOptions } from './shared-response/shared-route.js';

/** The compression of one application. */
export class Compression implements Feature {
  /** The pipeline calls `started()` only where there is an engine: `CompressionOff` has none. */
  readonly engine: CompressionEngine;
  private readonly cache: ContentCache;
  /** By controller, then handler: controllers that inherit the same handler do not share each other's answers. */
  private readonly sharedRoutes = new Map<Type, Map<Function, SharedRoute>>();

  constructor(
    options: ResolvedCompression,
    private readonly host: PerfApplication,
  ) {
    this.cache = new ContentCache(host.cacheBytes(options.cache?.maxBytes ?? SHARED_ONLY_BYTES));
    const compressor = new Compressor(options.levels);
    this.engine = new CompressionEngine(options, compressor, this.cache, host.report);
  }

  /** @throws PERF_ERR_DECORATOR for `@SharedResponse()` on anything but a GET handler, `@NoCompression()` on anything but a route */
  async install({ modules, handlers, platform }: FeatureBoot): Promise<void> {
    if (platform === null) return;
    checkHandlers(modules, handlers);
    this.host.requests.sharedAnswers = { find: (controller, handler) => this.findSharedRoute(controller, handler) };
    if (platform.kind === 'fastify') await registerReplyCompress(platform.application as FastifyApplication);
  }

  started(state: RequestState): void {
    const { request, response } = state;
    if (request === null || response === null) return;
    holdResponse(response, new HeldResponse(state, request, response, this.engine));
  }

  snapshot(): Pick<PerfSnapshot, 'compression'> {
    return { compression: { ...this.engine.counters, cacheBytes: this.cache.bytes } };
  }

  close(): void {
    this.cache.clear();
  }

  private findSharedRoute(controller: Type, handler: Function): SharedRoute {
    const routes = getOrAdd(this.sharedRoutes, controller, () => new Map<Function, SharedRoute>());
    return getOrAdd(routes, handler, () =>
      this.createSharedRoute(readSharedOptions(handler)!, `${controller.name}.${handler.name}`),
    );
  }

  private createSharedRoute(options: SharedResponseOptions, where: string): SharedRoute {
    const { cache, host } = this;
    const notShared = (reason: string): void =>
      host.report.report(
        `@SharedResponse() on "${where}": ${reason}`,
        `@SharedResponse() on "${where}" shares nothing: ${reason}.`,
      );
    let isOwnLogged = false;
    const ownAnswerGiven = (sign: CallerSign): void => {
      if (!isOwnLogged) this.logOwnAnswer(where, sign);
      isOwnLogged = true;
    };
    return new SharedRoute(options, { cache, nowMs: host.nowMs, units: host.units, notShared, ownAnswerGiven });
  }

  /** Once for each route: that callers are signed in is no fault, and its repeats need no counting. */
  private logOwnAnswer(where: string, sign: CallerSign): void {
    const line =
      `@SharedResponse() on "${where}": a caller that is known by \`${sign}\` got an answer of its own, as all do that \`Cookie\`, ` +
      '`Authorization` or `unit` makes known. To share it, send `Cache-Control: public` or write `forEveryone: true` where it is ' +
      'the same for all of them; else give a `varyBy` that returns what it depends on.';
    this.host.report.report(line, line);
  }
}
