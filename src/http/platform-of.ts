import type { AbstractHttpAdapter } from '@nestjs/core';
import type { Reporter } from '../core/reporter.js';
import { MountPaths } from './express/mounts.js';
import { ExpressPlatform, type ExpressApplication } from './express/platform.js';
import { FastifyPlatform } from './fastify/platform.js';
import type { HttpOptions } from './http.options.js';
import { stateOf, type RequestLifecycle } from './lifecycle.js';
import type { Platform } from './platform.js';

/** The platform behind Nest's adapter; null, with a warning, for a framework that this library does not know. */
export function platformOf(
  adapter: AbstractHttpAdapter,
  options: Required<HttpOptions>,
  mounts: MountPaths,
  logger: Reporter,
): Platform | null {
  const type = adapter.getType();
  if (type === 'fastify') return new FastifyPlatform(adapter.getInstance());
  if (type !== 'express') {
    logger.warn(
      `PerfModule knows the HTTP adapters "fastify" and "express", not "${type}": requests are neither measured nor ` +
        'compressed, and @DeferWork does nothing. Resources and the event loop are still observed.',
    );
    return null;
  }
  mounts.watch(adapter);
  return new ExpressPlatform(adapter.getInstance(), adapter.getHttpServer(), options, mounts);
}

/** On servers of the application's own, what Express's body parsers refuse comes no further: Nest registers them before modules start. */
export function startBeforeParsers(adapter: AbstractHttpAdapter | null | undefined, requests: RequestLifecycle): void {
  if (adapter?.getType() !== 'express') return;
  adapter.getInstance<ExpressApplication>().use((request, response, next) => {
    if (stateOf(request) === null) requests.start(request, response);
    next();
  });
}

/** What main.ts mounts before the application is initialised can be seen, too, where there is an adapter already. */
export function mountsOf(adapter: AbstractHttpAdapter | null | undefined, enabled: boolean): MountPaths {
  const mounts = new MountPaths(!enabled);
  if (adapter?.getType() === 'express') mounts.watch(adapter);
  return mounts;
}
