import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { entryOf } from '../../core/entry-of.js';
import type { RequestState } from '../../core/request-state.js';
import { methodLabel, Route, type Routes } from '../../core/route.js';
import type { HttpOptions } from '../http.options.js';
import { stateOf, type RequestLifecycle } from '../lifecycle.js';
import { answerOf, type Answer, type RawAnswer } from '../answer.js';
import type { Platform } from '../platform.js';
import { RawPaths } from '../raw-paths.js';
import type { MountPaths } from './mounts.js';
import { ExpressProperties, FORGETS_HIDDEN_CLASSES } from './properties.js';

type Path = string | RegExp | (string | RegExp)[];
interface ExpressRoute {
  readonly path: Path;
  readonly stack: readonly ({ readonly handle?: unknown } | null | undefined)[];
}
interface ExpressRequest extends IncomingMessage {
  readonly route?: ExpressRoute;
  readonly baseUrl?: string;
  readonly app?: { path?(): string };
}
type Middleware = (request: ExpressRequest, response: ServerResponse, next: (error?: unknown) => void) => unknown;
/** The part of Express 5 that is used; structural, so that no vendor's type is needed. */
export interface ExpressApplication {
  /** The prototypes that the application gives to its requests and responses. */
  readonly request: object;
  readonly response: object;
  use(middleware: Middleware): unknown;
  get(path: string, handler: Middleware): unknown;
}

export class ExpressPlatform implements Platform {
  readonly kind = 'express';
  /** By pattern: of routes that no controller has. */
  private readonly found = new Map<string, Route>();
  private readonly rawPaths = new RawPaths(withoutCase);

  constructor(
    readonly application: ExpressApplication,
    private readonly server: Server,
    private readonly options: Required<HttpOptions>,
    private readonly mounts: MountPaths,
  ) {}

  observe(requests: RequestLifecycle, routes: Routes): void {
    // Raw routes are there before Nest's, and Express asks the first; Fastify refuses two of one path.
    routes.listen(({ method, pattern, handler }) => {
      const owner = this.rawPaths.ownerOf(pattern);
      // `_OTHER` is `@All()`.
      if (owner === null || handler === null || !/^(?:GET|HEAD|_OTHER)$/.test(method)) return;
      const cause = `${method === 'HEAD' ? method : 'GET'} ${pattern} is answered by ${owner} and never by ${handler.name}`;
      requests.report.report(cause, `${cause}. Give one of them another path.`);
    });
    // Nest registers the body parsers before any module can add a middleware; the server's own event sees their answers too.
    this.server.prependListener('request', requests.arrive);
    if (FORGETS_HIDDEN_CLASSES && this.options.expressProperties) {
      this.server.prependListener('request', new ExpressProperties(this.application).reserve);
    }
    // Servers of the application's own come without that event.
    this.application.use((request, response, next) => requests.enter(requests.start(request, response), next));
  }

  findRoute(state: RequestState, routes: Routes): Route | null {
    const request: ExpressRequest | null = state.request;
    if (request === null) return null;
    const pattern = this.patternFor(request);
    if (pattern === null) return null;
    const create = (): Route => routes.create(methodLabel(request.method), pattern, null);
    return entryOf(this.found, pattern, create).forMethod(request.method);
  }

  private patternFor(request: ExpressRequest): string | null {
    const matched: unknown = request.route;
    const mount = this.mounts.find(request.baseUrl ?? '');
    if (!isRoute(matched)) return mount;
    const handler = matched.stack[0]?.handle;
    if (this.mounts.isNotFound(handler)) return null;
    // Express leaves on a request the last route that it went through, also when that only let it pass.
    return this.mounts.isMiddleware(handler) ? mount : this.patternOf(matched, request);
  }

  private patternOf({ path }: ExpressRoute, request: ExpressRequest): string {
    const paths = Array.isArray(path) ? path : [path];
    return `${this.mountOf(request)}${paths.map(String).join('|')}`;
  }

  /** Where the router or application that answered is mounted; `*` stands for what only the client's text tells. */
  private mountOf({ baseUrl = '', app }: ExpressRequest): string {
    if (baseUrl === '') return '';
    const known = this.mounts.find(baseUrl);
    if (known !== null) return known;
    // Of an application Express knows the pattern.
    const pattern = app?.path?.() ?? '';
    return segments(pattern) === segments(baseUrl) ? pattern : `${pattern}/*`;
  }

  rawRoute(path: string, owner: string, answer: RawAnswer): void {
    this.rawPaths.take(path, owner);
    const route = new Route('GET', path, null, () => {});
    this.application.get(path, (request, response, next) => {
      const state = stateOf(request);
      if (state !== null) state.route = route;
      answer(request)
        .then((answered) => {
          // Somebody else may have answered meanwhile: middleware with a timeout.
          if (!response.headersSent) this.answer(response, answerOf(answered));
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

/** Anybody may set `req.route`. */
function isRoute(value: unknown): value is ExpressRoute {
  if (typeof value !== 'object' || value === null) return false;
  const { path, stack } = value as { path?: unknown; stack?: unknown };
  return Array.isArray(stack) && (typeof path === 'string' || path instanceof RegExp || Array.isArray(path));
}

/** Express asks for neither the case of a path nor the slashes at its end, unless its settings say so. */
const withoutCase = (path: string): string => path.toLowerCase().replace(/\/+$/, '');

const segments = (path: string): number => path.split('/').length;
