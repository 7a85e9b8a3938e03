import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { RequestState } from '../../core/request-state.js';
import { methodLabel, Route, type Routes } from '../../core/route.js';
import type { RequestLifecycle } from '../lifecycle.js';
import { answerOf, type Answer, type RawAnswer } from '../answer.js';
import type { Platform } from '../platform.js';
import { RawPaths } from '../raw-paths.js';
import { ROUTE, routeOf, runnable, type RouteFunction } from '../route-functions.js';

interface RouteConfig {
  [ROUTE]?: Route;
}
interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly routeOptions: { readonly url: string | undefined; readonly config: RouteConfig | undefined };
}
interface FastifyReply {
  readonly raw: ServerResponse;
  code(status: number): FastifyReply;
  header(name: string, value: unknown): FastifyReply;
  send(body: unknown): FastifyReply;
}
interface RegisteredRoute {
  readonly method: string | string[];
  readonly url: string;
  config?: RouteConfig;
  handler: RouteFunction;
}
/** The part of Fastify 5 that is used; structural, so that no vendor's type is needed. */
export interface FastifyInstance {
  readonly server: Server;
  addHook(name: 'onRoute', hook: (route: RegisteredRoute) => void): unknown;
  addHook(name: 'onRequest', hook: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void): unknown;
  get(
    path: string,
    options: object,
    handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ): unknown;
}

export class FastifyPlatform implements Platform {
  readonly kind = 'fastify';
  private readonly rawPaths = new RawPaths();

  constructor(readonly application: FastifyInstance) {}

  observe(requests: RequestLifecycle, routes: Routes): void {
    const fastify = this.application;
    fastify.addHook('onRoute', (route) => {
      if (route.config?.[ROUTE] !== undefined) return;
      const known = routeOf(route.handler);
      const own = known ?? routes.create(firstMethod(route.method), route.url, null);
      route.config = { ...route.config, [ROUTE]: own };
      if (known === null) route.handler = runnable(route.handler, own, requests);
    });
    // Before every hook and middleware.
    fastify.server.prependListener('request', requests.arrive);
    // `inject()` and servers of the application's own come without that event.
    fastify.addHook('onRequest', (request, reply, done) => {
      const state = requests.start(request.raw, reply.raw);
      state.frameworkRequest = request;
      requests.enter(state, done);
    });
  }

  findRoute(state: RequestState, routes: Routes): Route | null {
    const request = state.frameworkRequest as FastifyRequest;
    // Still the raw request: an earlier middleware answered before any hook ran.
    if (state.frameworkRequest === state.request) return null;
    const { url, config } = request.routeOptions;
    if (url === undefined || config === undefined) return null;
    // A route that main.ts registered before this module's hooks existed gets its Route when it is first reached.
    const route = (config[ROUTE] ??= routes.create(methodLabel(request.raw.method), url, null));
    return route.forMethod(request.raw.method);
  }

  rawRoute(path: string, owner: string, answer: RawAnswer): void {
    this.rawPaths.take(path, owner);
    const config: RouteConfig = { [ROUTE]: new Route('GET', path, null, () => {}) };
    try {
      // Fastify logs each request with its URL, and a URL may hold a token.
      this.application.get(path, { config, logLevel: 'error' }, async (request, reply) => {
        this.answer(reply, answerOf(await answer(request)));
        return reply;
      });
    } catch (error) {
      // With `ignoreTrailingSlash` the path without its slash serves this one.
      const isTwice = (error as { code?: string }).code === 'FST_ERR_DUPLICATED_ROUTE';
      if (!isTwice || !path.endsWith('/')) throw error;
    }
  }

  answer(response: unknown, { status, headers, body }: Answer): void {
    const reply = (response as FastifyReply).code(status);
    for (const [name, value] of Object.entries(headers)) reply.header(name, value);
    // Fastify takes an empty text without a type for plain text.
    reply.send(body.length === 0 && headers['content-type'] === undefined ? undefined : body);
  }
}

const firstMethod = (method: string | string[]): string => methodLabel(Array.isArray(method) ? method[0] : method);
