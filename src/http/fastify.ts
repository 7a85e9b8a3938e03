import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { methodLabel, Route, type RouteHandler } from '../core/route.js';
import { requestContext } from '../core/request-context.js';
import type { RequestState } from '../core/request-state.js';
import { HANDLER } from './controller-handlers.js';
import type { HandlerRunner, HttpInstallation, RawAnswer } from './http-installation.js';
import { stateOfMessage } from './request-lifecycle.js';
import { hearFirst } from './server-request.js';

/** Where a Fastify route's `config` carries our {@link Route}. */
const ROUTE: unique symbol = Symbol('perf:route');

interface RouteConfig {
  [ROUTE]?: Route;
  [HANDLER]?: RouteHandler;
}
interface FastifyRequest {
  raw: IncomingMessage;
  routeOptions: { url: string | undefined; config: RouteConfig | undefined };
}
interface FastifyReply {
  raw: ServerResponse;
  code(status: number): FastifyReply;
  type(contentType: string): FastifyReply;
  send(body: string): FastifyReply;
}
type Handler = (this: unknown, request: unknown, reply: unknown) => unknown;
interface RegisteredRoute {
  method: string | string[];
  url: string;
  config?: RouteConfig;
  handler: Handler;
}
/** The part of Fastify 5 that is used; structural, so that no vendor's type is needed. */
export interface FastifyInstance {
  server: Server;
  addHook(name: 'onRoute', hook: (route: RegisteredRoute) => void): unknown;
  addHook(name: 'onRequest', hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void): unknown;
  get(
    path: string,
    options: object,
    handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ): unknown;
}

/**
 * Observes a Fastify application: no Nest middleware (it would pull every request through middie, +100 µs), no
 * `setOn*Hook` (a single slot, and a two-argument function in it starves every later hook).
 */
export function installOnFastify(fastify: FastifyInstance, installation: HttpInstallation): void {
  const { lifecycle, routes, contextEnabled, handlerRunner } = installation;
  fastify.addHook('onRoute', (route) => {
    const config = route.config;
    const own = config?.[ROUTE] ?? routes.create(firstMethod(route.method), route.url, config?.[HANDLER] ?? null);
    if (config?.[HANDLER] !== undefined) route.handler = identified(route, own, handlerRunner);
    if (config?.[ROUTE] === undefined) route.config = { ...config, [ROUTE]: own };
  });
  // The server's own event comes before every hook and middleware; `inject()` and secondary servers do without it.
  hearFirst(fastify.server, lifecycle.start);
  fastify.addHook('onRequest', (request, reply, done) => {
    const state = lifecycle.start(request.raw, reply.raw);
    state.frameworkRequest = request;
    if (contextEnabled) requestContext.run(state, done);
    else done();
  });
  lifecycle.findRoutesWith((state) => {
    const request = state.frameworkRequest as FastifyRequest;
    // Still the raw request: an earlier middleware answered before any hook ran.
    if (state.frameworkRequest === state.request) return null;
    const { url, config } = request.routeOptions;
    if (url === undefined || config === undefined) return null;
    // A route that main.ts registered before this module's hooks existed gets its Route when it is first reached.
    const route = (config[ROUTE] ??= routes.create(methodLabel(request.raw.method), url, config[HANDLER] ?? null));
    return route.forMethod(request.raw.method);
  });
}

/** Registers a GET route that no guard, document or record sees. */
export function rawRouteOnFastify(fastify: FastifyInstance, path: string, answer: RawAnswer): void {
  const config: RouteConfig = { [ROUTE]: new Route('GET', path, null, () => {}) };
  fastify.get(path, { config }, async (request, reply) => {
    const { status, type, body } = await answer(request);
    return reply.code(status).type(type).send(body);
  });
}

/** The route function, run in a way that a look at the blocked stack can tell its request; where nobody looks, it only tells its route. */
function identified(registered: RegisteredRoute, route: Route, runner: HandlerRunner | null): Handler {
  const { handler } = registered;
  if (runner === null) {
    return function (this: unknown, request: unknown, reply: unknown): unknown {
      const state = stateOfMessage((request as FastifyRequest).raw);
      if (state !== null) tellRoute(state, route);
      return handler.call(this, request, reply);
    };
  }
  const identifying: Handler = function (this: unknown, request: unknown, reply: unknown): unknown {
    const state = stateOfMessage((request as FastifyRequest).raw);
    if (state === null) return handler.call(this, request, reply);
    tellRoute(state, route);
    return runner.run(state, handler, this, request, reply, undefined, false);
  };
  /**
   * What Fastify itself calls (and hands out as `request.routeOptions.handler`): it binds the function of a route. Who puts another
   * one around it, or copies the route, calls the one above.
   */
  const bound = (self: unknown): Handler =>
    function (this: unknown, request: unknown, reply: unknown): unknown {
      if (registered.handler !== identifying) return identifying.call(self, request, reply);
      const state = stateOfMessage((request as FastifyRequest).raw);
      if (state === null) return handler.call(self, request, reply);
      tellRoute(state, route);
      return runner.run(state, handler, self, request, reply, undefined, true);
    };
  /** Also asked of what stands for the function: a proxy, or one that has its properties. */
  const bind = function (this: Handler, self: unknown, ...parameters: unknown[]): unknown {
    if (this === identifying && parameters.length === 0) return bound(self);
    return Function.prototype.bind.call(this, self, ...parameters) as unknown;
  };
  return Object.defineProperty(identifying, 'bind', { value: bind });
}

/**
 * Here because a look at the stack may not ask: it runs inside an interrupt. It is also the cheapest way: Fastify makes an object
 * of options for whoever asks the request.
 */
function tellRoute(state: RequestState, route: Route): void {
  if (state.knownRoute === null) state.route = route.forMethod(state.request!.method);
}

function firstMethod(method: string | string[]): string {
  return methodLabel(Array.isArray(method) ? method[0] : method);
}
