import type { IncomingMessage, ServerResponse } from 'node:http';
import { createAnswer, type Answer, type Platform, type RawAnswer } from './platform.js';
import type { RequestState } from './request-state.js';
import { NO_STARTS, type Route, type Routes } from './routes.js';
import { findState, type RequestTracker } from './tracker.js';

interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly routeOptions: { readonly url: string | undefined };
}
type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;
interface RegisteredRoute {
  readonly url: string;
  /** A list for `@All()`. */
  readonly method: string | readonly string[];
  onRequest?: OnRequest | OnRequest[];
}
interface FastifyReply {
  readonly raw: ServerResponse;
  code(status: number): FastifyReply;
  header(name: string, value: unknown): FastifyReply;
  send(body: unknown): FastifyReply;
}
/** The part of Fastify 5 that is used; structural, so that no vendor's type is needed. */
export interface FastifyInstance {
  addHook(name: 'onRequest', hook: OnRequest): unknown;
  addHook(name: 'onRoute', hook: (route: RegisteredRoute) => void): unknown;
  get(
    path: string,
    options: object,
    handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
  ): unknown;
}

export class FastifyPlatform implements Platform {
  readonly kind = 'fastify';
  private readonly pathsOfNest = new Set<string>();
  /** True while Nest registers its routes. */
  private registering = true;

  constructor(
    readonly application: FastifyInstance,
    private readonly requests: RequestTracker,
    private readonly routes: Routes,
  ) {}

  /** The hook also starts requests without the server's `request` event: of `inject()`, and of servers that the application makes. */
  observe(): void {
    const { requests } = this;
    this.application.addHook('onRoute', (route) => {
      if (this.registering) this.watchRoute(route);
    });
    this.application.addHook('onRequest', (request, reply, done) => {
      const state = requests.start(request.raw, reply.raw);
      state.frameworkRequest = request;
      requests.enter(state, done);
    });
  }

  routesRegistered(): void {
    this.registering = false;
  }

  /** Finds the route where its hook (see below) did not run: Nest has not registered it, or an earlier hook has answered. */
  findRoute(state: RequestState): Route | null {
    // Without a request of Fastify's, middleware has answered before any hook.
    if (state.frameworkRequest === state.request) return null;
    const { raw, routeOptions } = state.frameworkRequest as FastifyRequest;
    const { url } = routeOptions;
    if (url === undefined) return null;
    return this.routes.findFrameworkRoute(raw.method, url, this.pathsOfNest.has(url) ? undefined : NO_STARTS);
  }

  /** Names the route by a hook of its own: reading `request.routeOptions` would parse the headers of every request. */
  private watchRoute(registered: RegisteredRoute): void {
    const { requests, routes } = this;
    const { url, method, onRequest = [] } = registered;
    this.pathsOfNest.add(url);
    let route: Route | null = null;
    const trigger: OnRequest = (request, _reply, done) => {
      const state = findState(request.raw);
      route ??= typeof method === 'string' ? routes.findFrameworkRoute(method, url) : routes.findNestRoute('ALL', url);
      if (state !== null && route !== null) requests.triggered(state, route);
      done();
    };
    registered.onRequest = [trigger, ...[onRequest].flat()];
  }

  rawRoute(path: string, answer: RawAnswer): void {
    const route = this.routes.createOwn(path);
    try {
      // Fastify logs each request with its URL, and a URL may contain a token.
      this.application.get(path, { logLevel: 'error' }, async (request, reply) => {
        const state = findState(request.raw);
        if (state !== null) state.route = route;
        this.answer(reply, createAnswer(await answer(request)));
        return reply;
      });
    } catch (error) {
      // With `ignoreTrailingSlash` the same path without its slash, registered before, serves this one.
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
