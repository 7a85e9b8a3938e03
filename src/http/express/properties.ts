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
}
interface ExpressResponse extends ServerResponse {
  locals?: unknown;
}
const NAMES = ['res', 'next', 'baseUrl', 'originalUrl', '_parsedUrl', 'params', 'route', 'locals'];

/** Up to version 12 (Node 22) V8 gives each object whose prototype was changed hidden classes of its own. */
export const FORGETS_HIDDEN_CLASSES = Number.parseInt(process.versions.v8, 10) < 13;

/** Sets what Express will set, before it changes prototypes: then requests share hidden classes (the ledger). */
export class ExpressProperties {
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
    const { res, next, baseUrl, originalUrl, _parsedUrl, params, route } = request;
    request.res = res;
    request.next = next;
    request.baseUrl = baseUrl;
    request.originalUrl = originalUrl;
    request._parsedUrl = _parsedUrl;
    request.params = params;
    request.route = route;
    const { locals, statusCode, statusMessage } = response;
    response.locals = locals;
    response.statusCode = statusCode;
    response.statusMessage = statusMessage;
  };
}

/** An application that has put defaults of its own on Express's prototypes would not see them any more. */
function isUsual(prototype: object): boolean {
  const { statusCode = 200, statusMessage } = prototype as { statusCode?: unknown; statusMessage?: unknown };
  return statusCode === 200 && statusMessage === undefined && !NAMES.some((name) => name in prototype);
}
