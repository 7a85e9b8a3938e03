import type { Server } from 'node:http';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { RequestState } from '../core/request-state.js';
import { identifyOnExpress, installOnExpress, rawRouteOnExpress, type ExpressApplication } from './express.js';
import { installOnFastify, rawRouteOnFastify, type FastifyInstance } from './fastify.js';
import type { RequestLifecycle } from './request-lifecycle.js';
import type { RouteRegistry } from './route-registry.js';

/** A controller's route function. Positional arguments, so that none is copied. */
export type RouteFunction = (this: unknown, first: unknown, second: unknown, third: unknown) => unknown;

/** Calls route functions for observed requests. */
export interface HandlerRunner {
  /**
   * What the function returns or throws is passed on. `outermost`: nobody gets what is returned but a framework that calls its `then`
   * at once; then it need not be a promise, and is cheaper.
   */
  run(
    state: RequestState,
    handler: RouteFunction,
    self: unknown,
    first: unknown,
    second: unknown,
    third: unknown,
    outermost: boolean,
  ): unknown;
}

/** What both adapters need to observe an application's requests. */
export interface HttpInstallation {
  readonly lifecycle: RequestLifecycle;
  readonly routes: RouteRegistry;
  /** Whether requests enter the context store. */
  readonly contextEnabled: boolean;
  /** Runs the route functions of controllers, guards to answer; null: they are left alone. */
  readonly handlerRunner: HandlerRunner | null;
}

/** Answers a raw route. */
export type RawAnswer = (request: unknown) => Promise<{ status: number; type: string; body: string }>;

/**
 * Installs the request path on the application's adapter. Call it from a module's `configure()`: later the routes exist
 * already, and in constructors the adapter does not exist yet under `@nestjs/testing`.
 */
export function installOnHttp(adapter: AbstractHttpAdapter, installation: HttpInstallation): void {
  const server = adapter.getHttpServer() as Server;
  if (adapter.getType() === 'fastify') installOnFastify(adapter.getInstance<FastifyInstance>(), installation);
  else installOnExpress(adapter.getInstance<ExpressApplication>(), server, installation);
}

/**
 * Puts `runner` around the route functions of controllers where {@link installOnHttp} could not: Express has no hook
 * for a new route. Call it when routes are registered.
 */
export function identifyHandlers(adapter: AbstractHttpAdapter, runner: HandlerRunner): void {
  if (adapter.getType() === 'express') identifyOnExpress(adapter.getInstance<ExpressApplication>(), runner);
}

/** Registers a GET route beside Nest: no guards, no Swagger, no record. */
export function rawRoute(adapter: AbstractHttpAdapter, path: string, answer: RawAnswer): void {
  if (adapter.getType() === 'fastify') rawRouteOnFastify(adapter.getInstance<FastifyInstance>(), path, answer);
  else rawRouteOnExpress(adapter.getInstance<ExpressApplication>(), path, answer);
}

/**
 * Runs `work` when the HTTP server has closed: after the last response and before any provider's
 * `onApplicationShutdown` takes queues and databases away. Nest calls the adapter's `close` just there.
 */
export function afterServerClosed(adapter: AbstractHttpAdapter, work: () => Promise<void>): void {
  const close = adapter.close.bind(adapter) as () => Promise<void>;
  adapter.close = async () => {
    try {
      await close();
    } finally {
      await work();
    }
  };
}
