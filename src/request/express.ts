import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestState } from './request-state.js';
import { ownRoute, type Route, type Routes } from './routes.js';
import { createAnswer, type Answer, type RawAnswer } from './answer.js';
import { stateOf, type RequestTracker } from './tracker.js';
import type { Platform } from './platform.js';

type Path = string | RegExp | (string | RegExp)[];
interface ExpressRequest extends IncomingMessage {
  readonly route?: { readonly path?: unknown };
  readonly baseUrl?: string;
}
type Middleware = (request: ExpressRequest, response: ServerResponse, next: (error?: unknown) => void) => unknown;
/** The part of Express 5 that is used; structural, so that no vendor's type is needed. */
export interface ExpressApplication {
  use(middleware: Middleware): unknown;
  get(path: string, handler: Middleware): unknown;
}

export class ExpressPlatform implements Platform {
  readonly kind = 'express';

  constructor(
    readonly application: ExpressApplication,
    /** Nest emits no routes: the framework's may be Nest's. */
    private readonly isOldNest: boolean,
  ) {}

  get listener(): unknown {
    return this.application;
  }

  /** Servers of the application's own emit no `request` to us. */
  observe(requests: RequestTracker): void {
    this.application.use((request, response, next) => requests.enter(requests.reach(request, response), next));
  }

  /** A route that Nest has not registered, or the mount path of a function that answers by itself, as GraphQL servers do. */
  findRoute({ request, closed, status }: RequestState, routes: Routes): Route | null {
    if (request === null || (closed && status === 404)) return null;
    const { route, baseUrl = '' } = request as ExpressRequest;
    const path = route?.path;
    const pattern = `${maskMount(baseUrl)}${isPath(path) ? [path].flat().map(String).join('|') : ''}`;
    return pattern === '' ? null : routes.findOfFramework(request.method, pattern, this.isOldNest && baseUrl === '');
  }

  rawRoute(path: string, _owner: string, answer: RawAnswer): void {
    const route = ownRoute(path);
    this.application.get(path, (request, response, next) => {
      const state = stateOf(request);
      if (state !== null) state.route = route;
      answer(request)
        .then((answered) => {
          // Middleware with a timeout may have answered meanwhile.
          if (!response.headersSent) this.answer(response, createAnswer(answered));
        })
        .then(undefined, next);
    });
  }

  answer(response: unknown, { status, headers, body }: Answer): void {
    const raw = response as ServerResponse;
    raw.statusCode = status;
    for (const [name, value] of Object.entries(headers)) raw.setHeader(name, value);
    raw.end(body);
  }
}

/** Any code may set `req.route`. Express leaves the last one there, which for wildcards is mostly a middleware's. */
function isPath(path: unknown): path is Path {
  if (typeof path === 'string') return !path.includes('*');
  return path instanceof RegExp || (Array.isArray(path) && path.every(isPath));
}

/** A mount path as a label. Express reports it as the client sent it: a segment that may be an id or a secret becomes `*`. */
const maskMount = (baseUrl: string): string =>
  baseUrl
    .toLowerCase()
    .split('/')
    .map((segment) => (segment === '' || /^[a-z][a-z_-]{0,23}$/.test(segment) ? segment : '*'))
    .join('/');
