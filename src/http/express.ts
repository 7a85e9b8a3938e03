import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { methodLabel, Route, type RouteHandler } from '../core/route.js';
import { requestContext } from '../core/request-context.js';
import { HANDLER_METADATA } from './controller-handlers.js';
import { ExpressProperties, FORGETS_HIDDEN_CLASSES } from './express-properties.js';
import type { HandlerRunner, HttpInstallation, RawAnswer, RouteFunction } from './http-installation.js';
import { stateOfMessage } from './request-lifecycle.js';
import { hearFirst } from './server-request.js';

/** Where Express's own route object carries our {@link Route}. */
const ROUTE: unique symbol = Symbol('perf:route');
/** Longest mount path that becomes part of a label: a mount with parameters holds what the client sent. */
const MAX_BASE_LENGTH = 100;

interface ExpressRoute {
  path: string | RegExp | (string | RegExp)[];
  stack: { handle: Middleware }[];
  [ROUTE]?: Route;
}
interface ExpressRequest extends IncomingMessage {
  route?: ExpressRoute;
  baseUrl?: string;
}
type Middleware = (request: ExpressRequest, response: ServerResponse, next: (error?: unknown) => void) => unknown;
/** The part of Express 5 that is used; structural, so that no vendor's type is needed. */
export interface ExpressApplication {
  /** The prototypes that the application gives to its requests and responses. */
  readonly request: object;
  readonly response: object;
  use(middleware: Middleware): unknown;
  get(path: string, handler: Middleware): unknown;
  /** Express 5's router; its layers hold the routes. */
  router?: { stack: { route?: ExpressRoute }[] };
}

/** Observes an Express application; a middleware exists only where the context store is on. */
export function installOnExpress(express: ExpressApplication, server: Server, installation: HttpInstallation): void {
  const { lifecycle, routes, contextEnabled } = installation;
  // Nest registers the body parsers before any module can add a middleware; the server's own event sees their answers too.
  hearFirst(server, lifecycle.start);
  if (FORGETS_HIDDEN_CLASSES) hearFirst(server, new ExpressProperties(express).reserve);
  if (contextEnabled) {
    express.use((request, response, next) => requestContext.run(lifecycle.start(request, response), next));
  }
  lifecycle.findRoutesWith((state) => {
    const request: ExpressRequest | null = state.request;
    const matched = request?.route;
    if (matched === undefined) return null;
    const route = (matched[ROUTE] ??= routes.create(
      methodLabel(request?.method),
      patternOf(matched, request?.baseUrl),
      handlerOf(matched),
    ));
    return route.forMethod(request?.method);
  });
}

/** Puts `runner` around the route functions of controllers. Call it when routes are registered. */
export function identifyOnExpress(express: ExpressApplication, runner: HandlerRunner): void {
  for (const { route } of express.router?.stack ?? []) {
    for (const layer of route?.stack ?? []) {
      const handler = Reflect.getMetadata(HANDLER_METADATA, layer.handle) as RouteHandler | undefined;
      if (handler === undefined) continue;
      layer.handle = identified(layer.handle, runner);
      Reflect.defineMetadata(HANDLER_METADATA, handler, layer.handle);
    }
  }
}

/** The route function, run in a way that a look at the blocked stack can tell its request. Express counts its parameters. */
function identified(handle: Middleware, runner: HandlerRunner): Middleware {
  return function (this: unknown, request, response, next) {
    const state = stateOfMessage(request);
    if (state === null) return handle.call(this, request, response, next);
    // Asked for here because a look at the stack may not: it runs inside an interrupt.
    void state.route;
    return runner.run(state, handle as RouteFunction, this, request, response, next, false);
  };
}

/** Registers a GET route that no guard, document or record sees. */
export function rawRouteOnExpress(express: ExpressApplication, path: string, answer: RawAnswer): void {
  const route = new Route('GET', path, null, () => {});
  express.get(path, (request, response, next) => {
    const state = stateOfMessage(request);
    if (state !== null) state.route = route;
    answer(request).then(({ status, type, body }) => {
      response.statusCode = status;
      response.setHeader('content-type', type);
      response.end(body);
    }, next);
  });
}

function patternOf(route: ExpressRoute, baseUrl = ''): string {
  const paths = Array.isArray(route.path) ? route.path : [route.path];
  return `${baseUrl.slice(0, MAX_BASE_LENGTH)}${paths.map(String).join('|')}`;
}

function handlerOf(route: ExpressRoute): RouteHandler | null {
  const handle = route.stack.at(-1)?.handle;
  if (handle === undefined) return null;
  return (Reflect.getMetadata(HANDLER_METADATA, handle) as RouteHandler | undefined) ?? null;
}
