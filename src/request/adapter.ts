import { EventEmitter } from 'node:events';
import { RequestMethod } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { Server } from 'node:http';
import type { PerfApplication } from './application.js';
import { findExpressRoute } from './express.js';
import { FastifyPlatform } from './fastify.js';
import { OtherPlatform } from './other-adapter.js';
import type { Platform } from './platform.js';
import { storedRequest } from './request-state.js';

type Application = Pick<PerfApplication, 'requests' | 'routes' | 'logger'>;

/** Chooses the platform behind Nest's adapter. Null, with a warning, where the adapter has no Node.js server. */
export function choosePlatform(
  adapter: AbstractHttpAdapter,
  { requests, routes, logger }: Application,
): Platform | null {
  const type = adapter.getType();
  if (type === 'fastify') return new FastifyPlatform(adapter.getInstance(), requests, routes);
  if (type === 'express')
    return new OtherPlatform(adapter, requests, routes, type, (state) => findExpressRoute(state, routes));
  if (adapter.getHttpServer() instanceof EventEmitter) {
    logger.log(
      `On the HTTP adapter "${type}" everything works but labels for what Nest has not registered, such as static files ` +
        'and routers of the framework: their requests are recorded without a route.',
    );
    return new OtherPlatform(adapter, requests, routes);
  }
  logger.warn(
    `The HTTP adapter "${type}" does not run on a Node.js server: its requests are neither measured nor compressed, and ` +
      '@DeferWork does nothing. Resources and the event loop are still observed.',
  );
  return null;
}

/** Called before Nest registers routes: starts every request of the adapter, and notes the route that runs. */
export function observeAdapter(
  adapter: AbstractHttpAdapter,
  platform: Platform,
  { requests, routes }: Application,
): void {
  // The server's own event comes before body parsers and middleware, which may answer a request themselves.
  (adapter.getHttpServer() as Server).prependListener('request', requests.arrive);
  platform.observe();
  // On Fastify a hook reads the route instead: before 12.2 Nest's wrapper for this callback hides the version that Fastify reads.
  if (platform.kind === 'fastify' || !emitsRoutes(adapter)) return;
  const before = adapter.getOnRouteTriggered();
  adapter.setOnRouteTriggered((requestMethod, path) => {
    const state = storedRequest();
    if (state !== undefined) requests.triggered(state, routes.findNestRoute(RequestMethod[requestMethod], path));
    before?.(requestMethod, path);
  });
}

/** Whether Nest calls back with the route that runs. Nest 11.0.0 to 11.1.3 do not: the framework's own route is read. */
const emitsRoutes = (adapter: AbstractHttpAdapter): boolean => typeof adapter.setOnRouteTriggered === 'function';
