import { IncomingMessage, ServerResponse } from 'node:http';

/** What Express, its router and Node set on every request that is routed. */
interface ExpressRequest extends IncomingMessage {
  res?: unknown;
  next?: unknown;
  baseUrl?: unknown;
  originalUrl?: unknown;
  _parsedUrl?: unknown;
  params?: unknown;
  route?: unknown;
  _eventsCount?: unknown;
}
/** And on every response that is answered. */
interface ExpressResponse extends ServerResponse {
  locals?: unknown;
}
const NAMES = ['res', 'next', 'baseUrl', 'originalUrl', '_parsedUrl', 'params', 'route', 'locals'];

/**
 * A body parser sets it on requests without a body, too. On others it says that somebody has read the body, so it must not
 * stand there before.
 */
const BODY = 'body';
const BODIES = [BODY];
/** Those of the router and of this library's compression, which only they look at. */
const SYMBOLS: ReadonlySet<string | undefined> = new Set(['router.tracing.matchedRoute', 'perf:compression']);
/** So many routed requests are looked through for properties that cannot be named beforehand. */
const LEARNED_FROM_REQUESTS = 32;
/** And so many in all: an application may answer everything ahead of its routes. */
const MAX_LOOKS = 10_000;

/**
 * Whether V8 forgets, for an object whose prototype was changed, the hidden class that adding a property leads to. Up to version
 * 12 (Node 22) it does: each such object gets hidden classes of its own, which no inline cache fits.
 */
export const FORGETS_HIDDEN_CLASSES = Number.parseInt(process.versions.v8, 10) < 13;

/**
 * Gives requests and responses the properties that Express will set, before Express changes their prototypes: each with the
 * value it has anyway, `undefined` mostly. Then requests share their hidden classes, up to the first property that the
 * application adds, and a bare Nest + Express request takes a third of its CPU time (`npm run bench -- express`).
 */
export class ExpressProperties {
  private readonly ofRequest: PropertyKey[] = [];
  private readonly ofResponse: PropertyKey[] = [];
  private readsBodies = false;
  private unlearned = LEARNED_FROM_REQUESTS;
  private looksLeft = MAX_LOOKS;
  /** Told by the first request: main.ts may change Express's prototypes until then. */
  private usual: boolean | null = null;

  constructor(private readonly express: { readonly request: object; readonly response: object }) {}

  /** A listener for the server's `request`, before Express's own. */
  readonly reserve = (request: ExpressRequest, response: ExpressResponse): void => {
    this.usual ??= isUsual(this.express.request) && isUsual(this.express.response);
    // Accessors, those of HTTP/2 for example, may warn or throw.
    if (!this.usual || Object.getPrototypeOf(response) !== ServerResponse.prototype) return;
    if (Object.getPrototypeOf(request) !== IncomingMessage.prototype) return;
    // One statement each: every store has an inline cache of its own.
    const { res, next, baseUrl, originalUrl, _parsedUrl, params, route, _eventsCount } = request;
    request.res = res;
    request.next = next;
    request.baseUrl = baseUrl;
    request.originalUrl = originalUrl;
    request._parsedUrl = _parsedUrl;
    request.params = params;
    request.route = route;
    request._eventsCount = _eventsCount;
    const { locals, statusCode, statusMessage } = response;
    response.locals = locals;
    response.statusCode = statusCode;
    response.statusMessage = statusMessage;
    own(request, this.ofRequest);
    own(response, this.ofResponse);
    if (this.readsBodies && (request.method === 'GET' || request.method === 'HEAD')) own(request, BODIES);
    if (this.unlearned > 0 && this.looksLeft > 0) {
      this.looksLeft -= 1;
      response.once('close', () => this.learn(request, response));
    }
  };

  private learn(request: ExpressRequest, response: ExpressResponse): void {
    // What an earlier middleware has answered tells nothing.
    if (request.route === undefined) return;
    this.unlearned -= 1;
    addSymbols(this.ofRequest, request);
    addSymbols(this.ofResponse, response);
    this.readsBodies ||= Object.hasOwn(request, BODY);
  }
}

/** An application that has put defaults of its own on Express's prototypes would not see them any more. */
function isUsual(prototype: object): boolean {
  const { statusCode = 200, statusMessage } = prototype as { statusCode?: unknown; statusMessage?: unknown };
  return statusCode === 200 && statusMessage === undefined && ![...NAMES, BODY].some((name) => name in prototype);
}

function own(object: object, names: readonly PropertyKey[]): void {
  const properties = object as Record<PropertyKey, unknown>;
  for (const name of names) {
    const value = properties[name];
    properties[name] = value;
  }
}

function addSymbols(names: PropertyKey[], object: object): void {
  for (const symbol of Object.getOwnPropertySymbols(object)) {
    if (SYMBOLS.has(symbol.description) && !names.includes(symbol)) names.push(symbol);
  }
}
