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

/** Set where a body parser is registered; whoever asks for `'body' in request` must not find it elsewhere. */
const BODY = 'body';
/** Symbols that only the router and this library look at. */
const PRIVATE_SYMBOL = /^Symbol\((?:router\.|perf:)/;
/** So many requests are looked through for properties that no list can name. */
const LEARNED_FROM_REQUESTS = 32;

/**
 * Whether V8 forgets, for an object whose prototype was changed, the hidden class that adding a property leads to. Up to version
 * 12 (Node 22) it does: each such object gets hidden classes of its own, which no inline cache fits.
 */
export const FORGETS_HIDDEN_CLASSES = Number.parseInt(process.versions.v8, 10) < 13;

/**
 * Gives requests and responses the properties that Express will set, before Express changes their prototypes: each with the
 * value it has anyway, `undefined` mostly. Then all requests share their hidden classes, and a bare Nest + Express request takes
 * a quarter of its CPU time (`npm run bench -- express`).
 */
export class ExpressProperties {
  private readonly ofRequest: PropertyKey[] = [];
  private readonly ofResponse: PropertyKey[] = [];
  private unlearned = LEARNED_FROM_REQUESTS;

  /** A listener for the server's `request`, before Express's own. */
  readonly reserve = (request: ExpressRequest, response: ExpressResponse): void => {
    // Accessors, those of HTTP/2 for example, may warn or throw.
    if (Object.getPrototypeOf(response) !== ServerResponse.prototype) return;
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
    if (this.unlearned > 0) this.learnAtEnd(request, response);
  };

  private learnAtEnd(request: IncomingMessage, response: ServerResponse): void {
    this.unlearned -= 1;
    response.once('close', () => {
      addSymbols(this.ofRequest, request);
      addSymbols(this.ofResponse, response);
      if (Object.hasOwn(request, BODY) && !this.ofRequest.includes(BODY)) this.ofRequest.push(BODY);
    });
  }
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
    if (PRIVATE_SYMBOL.test(String(symbol)) && !names.includes(symbol)) names.push(symbol);
  }
}
